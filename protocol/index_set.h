// A set of small numbers: one bit each, so that the members of a sparse set are found in ascending
// order without a look at the others.
//
// resize() allocates where the set grows, and belongs to set-up; all else takes constant time, but
// for next(), which skips 4,096 absent numbers at a time, and clear(), which takes time in the
// members. No thread but the owner's.
#ifndef GRADCUBE_PROTOCOL_INDEX_SET_H_
#define GRADCUBE_PROTOCOL_INDEX_SET_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradcube::protocol {

class IndexSet {
 public:
  // For the numbers below `size`. Members at or beyond it must have been erased. Where there is no
  // memory nothing changes; for fewer numbers, or as many as there have been, it needs none.
  void resize(std::size_t size) {
    const std::size_t words = words_of(size);
    groups_.resize(words_of(words), 0);
    words_.resize(words, 0);
    size_ = size;
  }
  std::size_t size() const { return size_; }

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  bool contains(std::size_t index) const {
    return (words_[index / kWord] >> index % kWord & 1) != 0;
  }
  // Whether it was no member.
  bool insert(std::size_t index) {
    std::uint64_t& word = words_[index / kWord];
    if ((word & bit_of(index)) != 0) return false;
    ++count_;
    word |= bit_of(index);
    groups_[index / kWord / kWord] |= bit_of(index / kWord);
    return true;
  }
  void erase(std::size_t index) {
    std::uint64_t& word = words_[index / kWord];
    if ((word & bit_of(index)) == 0) return;
    --count_;
    word &= ~bit_of(index);
    if (word == 0) groups_[index / kWord / kWord] &= ~bit_of(index / kWord);
  }
  void clear() {
    for (std::size_t index = next(0); count_ != 0; index = next(index)) {
      count_ -= static_cast<std::size_t>(std::popcount(words_[index / kWord]));
      words_[index / kWord] = 0;
      groups_[index / kWord / kWord] &= ~bit_of(index / kWord);
    }
  }

  // The first member at or after `index`; size() if there is none.
  std::size_t next(std::size_t index) const {
    if (index >= size_) return size_;
    std::size_t word = index / kWord;
    std::uint64_t bits = words_[word] & from(index);
    if (bits == 0) {
      if (++word == words_.size()) return size_;
      std::size_t group = word / kWord;
      std::uint64_t words = groups_[group] & from(word);
      while (words == 0) {
        if (++group == groups_.size()) return size_;
        words = groups_[group];
      }
      word = group * kWord + static_cast<std::size_t>(std::countr_zero(words));
      bits = words_[word];
    }
    return word * kWord + static_cast<std::size_t>(std::countr_zero(bits));
  }

 private:
  static constexpr std::size_t kWord = 64;

  static std::size_t words_of(std::size_t bits) { return (bits + kWord - 1) / kWord; }
  static std::uint64_t bit_of(std::size_t index) { return std::uint64_t{1} << index % kWord; }
  static std::uint64_t from(std::size_t index) { return ~std::uint64_t{0} << index % kWord; }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> groups_;  // of words, a bit each: which of them have members
  std::size_t size_ = 0;
  std::size_t count_ = 0;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_INDEX_SET_H_
