// A set of small numbers: one bit each, so that the members of a sparse set are found in ascending
// order without a look at the others.
//
// resize() allocates where the set grows, and belongs to set-up; all else takes constant time, but
// for next(), which skips 64 absent numbers at a time. No thread but the owner's.
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
    words_.resize((size + kWord - 1) / kWord, 0);
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
    const std::uint64_t bit = std::uint64_t{1} << index % kWord;
    if ((word & bit) != 0) return false;
    ++count_;
    word |= bit;
    return true;
  }
  void erase(std::size_t index) {
    std::uint64_t& word = words_[index / kWord];
    const std::uint64_t bit = std::uint64_t{1} << index % kWord;
    count_ -= (word & bit) != 0 ? 1 : 0;
    word &= ~bit;
  }
  void clear() {
    words_.assign(words_.size(), 0);
    count_ = 0;
  }

  // The first member at or after `index`; size() if there is none.
  std::size_t next(std::size_t index) const {
    if (index >= size_) return size_;
    std::size_t word = index / kWord;
    std::uint64_t bits = words_[word] & ~std::uint64_t{0} << index % kWord;
    while (bits == 0) {
      if (++word == words_.size()) return size_;
      bits = words_[word];
    }
    return word * kWord + static_cast<std::size_t>(std::countr_zero(bits));
  }

 private:
  static constexpr std::size_t kWord = 64;

  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
  std::size_t count_ = 0;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_INDEX_SET_H_
