// What the C++ headers of all models share: a status, a value or a status, and memory with a known number of elements.
//
// C++17, header only, no exceptions needed: functions return a ptc::Status or a ptc::Result, and or_throw(), which is
// there where the compiler has exceptions, turns a failure into a ptc::Error. Nothing allocates where nothing fails.
#ifndef PTC_ABI_HPP
#define PTC_ABI_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "this header needs C++17 or newer; the .h beside it is C"
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#ifdef __cpp_exceptions
#include <stdexcept>
#endif

namespace ptc {
inline namespace v1 {

#ifdef __cpp_exceptions
/// A failed call; what() is the sentence of the model.
class Error : public std::runtime_error {
public:
  Error(ptc_status code, const std::string &message) : std::runtime_error(message), status(code) {}
  ptc_status code() const noexcept { return status; } // PTC_SHAPE_MISMATCH, ...

private:
  ptc_status status;
};
#endif

/// PTC_OK, or why a call failed. True in a condition if the call succeeded.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(ptc_status code, std::string message) : status(code), text(std::move(message)) {}

  explicit operator bool() const noexcept { return status == PTC_OK; }
  ptc_status code() const noexcept { return status; }
  const std::string &message() const noexcept { return text; } // "" if the call succeeded

#ifdef __cpp_exceptions
  void or_throw() const {
    if (status != PTC_OK)
      throw Error(status, text);
  }
#endif

private:
  ptc_status status = PTC_OK;
  std::string text;
};

/// A value, or the status of the call that did not make one. `*` and `->` need a value.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T made) : held(std::move(made)) {}
  Result(Status failed) : why(std::move(failed)) {}

  explicit operator bool() const noexcept { return held.has_value(); }
  const Status &status() const noexcept { return why; }
  T &operator*() & { return *held; }
  const T &operator*() const & { return *held; }
  T &&operator*() && { return std::move(*held); }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }

#ifdef __cpp_exceptions
  T or_throw() && {
    why.or_throw();
    return std::move(*held);
  }
#endif

private:
  std::optional<T> held;
  Status why;
};

/// A pointer to elements of the caller's and their number. Made from whatever has data() and size() (std::vector,
/// std::array, std::span), from an array, or from a pointer alone, whose number of elements nobody can check.
template <typename T> class Span {
public:
  static constexpr std::size_t unknown = static_cast<std::size_t>(-1);

  constexpr Span(T *pointer, std::size_t count = unknown) noexcept : first(pointer), number(count) {}
  template <typename Range,
            typename = std::enable_if_t<!std::is_pointer_v<std::remove_reference_t<Range>> &&
                                        !std::is_same_v<std::decay_t<Range>, Span> &&
                                        std::is_convertible_v<decltype(std::data(std::declval<Range &>())), T *>>>
  constexpr Span(Range &&range) noexcept : first(std::data(range)), number(std::size(range)) {}

  constexpr T *data() const noexcept { return first; }
  constexpr std::size_t size() const noexcept { return number; }

private:
  T *first;
  std::size_t number;
};

/// An output whose size only the run knows: elements that the run allocated, and their shape. Empty until then. With an
/// allocator in the model's options it must be given the same one. An element of the tensor has `Bits` bits.
template <typename T, std::size_t Rank, std::size_t Bits = 8 * sizeof(T)> class Found {
public:
  Found() = default;
  explicit Found(const ptc_allocator &of_options) noexcept : allocator(of_options) {}
  Found(Found &&other) noexcept
      : first(std::exchange(other.first, nullptr)), dims(other.dims), allocator(other.allocator) {}
  Found &operator=(Found &&other) noexcept {
    std::swap(first, other.first);
    std::swap(dims, other.dims);
    std::swap(allocator, other.allocator);
    return *this;
  }
  ~Found() { reset(); }

  T *data() const noexcept { return first; }
  const std::array<std::int64_t, Rank> &shape() const noexcept { return dims; }
  /// Elements of the tensor; none before a run.
  std::size_t size() const noexcept {
    std::size_t count = first ? 1 : 0;
    for (std::int64_t extent : dims)
      count *= static_cast<std::size_t>(extent);
    return count;
  }
  /// Gives the memory back.
  void reset() noexcept {
    if (first && allocator.allocate) {
      const std::size_t bytes = ((size() * Bits + 7) / 8 + 63) / 64 * 64;
      allocator.release(allocator.state, first, bytes ? bytes : 64);
    } else {
      std::free(first);
    }
    first = nullptr;
  }

  /// What the C functions write to.
  T **place() noexcept { return &first; }
  std::int64_t *extents() noexcept { return dims.data(); }

private:
  T *first = nullptr;
  std::array<std::int64_t, Rank> dims{};
  ptc_allocator allocator{};
};

/// Options with all defaults.
inline ptc_options default_options() noexcept {
  ptc_options options{};
  options.struct_size = sizeof options;
  return options;
}

namespace detail {

/// The product of the extents; Span::unknown if one is negative or the product too large, which the call itself
/// refuses.
template <std::size_t Rank> constexpr std::size_t elements(const std::array<std::int64_t, Rank> &shape) noexcept {
  std::size_t product = 1;
  for (std::int64_t extent : shape) {
    const std::size_t factor = static_cast<std::size_t>(extent);
    if (extent < 0 || (factor != 0 && product > static_cast<std::size_t>(-1) / factor))
      return static_cast<std::size_t>(-1);
    product *= factor;
  }
  return product;
}

/// Unless `status` has failed already: a sentence if the memory given has another size than the shape. Elements of
/// fewer than 8 bits are packed; one of a complex type is two `parts`.
template <typename T, std::size_t Rank>
void check(Status &status, const char *name, const Span<T> &given, const std::array<std::int64_t, Rank> &shape,
           unsigned bits, unsigned parts) {
  const std::size_t count = elements(shape), perByte = bits < 8 ? 8 / bits : 1;
  if (!status || given.size() == Span<T>::unknown || count == Span<T>::unknown)
    return;
  const std::size_t wanted = count / perByte + (count % perByte != 0 ? 1 : 0);
  if (given.size() != wanted * parts)
    status =
        Status(PTC_SHAPE_MISMATCH, std::string(name) + ": " + std::to_string(given.size()) +
                                       " elements in memory where the shape needs " + std::to_string(wanted * parts));
}

/// Owns a model or a context.
template <typename T, void (*Destroy)(T *)> class Owner {
public:
  Owner() = default;
  explicit Owner(T *owned) noexcept : object(owned) {}
  Owner(Owner &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
  Owner &operator=(Owner &&other) noexcept {
    Owner taken(std::move(other)); // frees what was here
    std::swap(object, taken.object);
    return *this;
  }
  ~Owner() { Destroy(object); }

  T *get() const noexcept { return object; }

private:
  T *object = nullptr;
};

} // namespace detail
} // namespace v1
} // namespace ptc

#endif // PTC_ABI_HPP
