// Overflow-checked sizes for untrusted descriptions.
#pragma once

#include <cstdint>

namespace attendant {

// A number of elements or bytes that is either exact or marked as invalid. Arithmetic reads as with
// plain integers; callers check ok() once, before they allocate.
class CheckedSize {
 public:
  constexpr CheckedSize() = default;
  // A negative `value` is invalid.
  constexpr CheckedSize(int64_t value) : value_(value), ok_(value >= 0) {}  // NOLINT: implicit

  constexpr bool ok() const { return ok_; }
  // Requires ok().
  constexpr int64_t value() const { return value_; }
  constexpr int64_t value_or(int64_t other) const { return ok_ ? value_ : other; }

  constexpr CheckedSize RoundedUpTo(int64_t multiple) const {
    const CheckedSize sum = *this + CheckedSize(multiple - 1);
    return sum.ok_ ? CheckedSize(sum.value_ / multiple * multiple) : sum;
  }

  friend constexpr CheckedSize operator+(CheckedSize a, CheckedSize b) {
    CheckedSize sum;
    const bool overflow = __builtin_add_overflow(a.value_, b.value_, &sum.value_);
    sum.ok_ = a.ok_ && b.ok_ && !overflow;
    return sum;
  }

  friend constexpr CheckedSize Larger(CheckedSize a, CheckedSize b) {
    const CheckedSize larger = a.value_ < b.value_ ? b : a;
    return a.ok_ && b.ok_ ? larger : CheckedSize(-1);
  }

  friend constexpr CheckedSize operator*(CheckedSize a, CheckedSize b) {
    CheckedSize product;
    const bool overflow = __builtin_mul_overflow(a.value_, b.value_, &product.value_);
    product.ok_ = a.ok_ && b.ok_ && !overflow;
    return product;
  }

 private:
  int64_t value_ = 0;
  bool ok_ = true;
};

}  // namespace attendant
