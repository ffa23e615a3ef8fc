// Numbers of elements of a table, in a row: a queue out of which any can be taken. Each element has
// the links of the one queue that it stands in, `next` and `previous`. Nothing is allocated, and
// each call takes the same time.
#ifndef GRADCUBE_DATAPLANE_ENGINE_SESSION_LINKED_QUEUE_H_
#define GRADCUBE_DATAPLANE_ENGINE_SESSION_LINKED_QUEUE_H_

#include <cstddef>
#include <cstdint>

namespace gradcube::dataplane {

template <typename Table>
class LinkedQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::uint32_t front() const { return first_; }

  void push(Table& table, std::uint32_t number) {
    if (empty()) {
      first_ = number;
    } else {
      table[last_].next = number;
      table[number].previous = last_;
    }
    last_ = number;
    ++size_;
  }
  std::uint32_t pop(Table& table) {
    const std::uint32_t number = first_;
    remove(table, number);
    return number;
  }
  // That stands in it.
  void remove(Table& table, std::uint32_t number) {
    const std::uint32_t next = table[number].next;
    const std::uint32_t previous = table[number].previous;
    if (number == first_) {
      first_ = next;
    } else {
      table[previous].next = next;
    }
    if (number == last_) {
      last_ = previous;
    } else {
      table[next].previous = previous;
    }
    --size_;
  }

 private:
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
  std::size_t size_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_SESSION_LINKED_QUEUE_H_
