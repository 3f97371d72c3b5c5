// Vectors of sixteen lanes, composed of native vectors of the instruction set. kernels_impl.h
// includes this file in its anonymous namespace, so that variants share no functions.
//
// Compilers also accept vectors wider than those of the processor, but then compare and select lane
// by lane. This made the search three times slower on AVX2.

template <class Lane>
struct Lanes {
  typedef Lane Native __attribute__((vector_size(TENGEN_VECTOR_BYTES)));
  static constexpr int kNative = TENGEN_VECTOR_BYTES / sizeof(Lane);
  static constexpr int kParts = kLanes / kNative;

  Native part[kParts];
};

using Floats = Lanes<float>;
using Ints = Lanes<int32_t>;

// Applies `f` to each native vector: out.part[i] = f(in.part[i]...).
template <class Out, class F, class... In>
[[gnu::always_inline]] inline Out each(F f, const In&... in) {
  Out out;
#pragma GCC unroll 4
  for (int i = 0; i < Out::kParts; ++i) out.part[i] = f(in.part[i]...);
  return out;
}

// Returns `x` in all lanes. Subtracts zero, because x + 0 would turn -0 into +0.
template <class T>
inline Lanes<T> splat(T x) {
  return each<Lanes<T>>([=](auto zero) { return x - zero; }, Lanes<T>{});
}

template <class T>
inline Lanes<T> operator+(Lanes<T> a, Lanes<T> b) {
  return each<Lanes<T>>([](auto u, auto v) { return u + v; }, a, b);
}
inline Floats operator-(Floats a, Floats b) {
  return each<Floats>([](auto u, auto v) { return u - v; }, a, b);
}
template <class T>
inline Lanes<T> operator*(Lanes<T> a, Lanes<T> b) {
  return each<Lanes<T>>([](auto u, auto v) { return u * v; }, a, b);
}
inline Floats operator/(Floats a, Floats b) {
  return each<Floats>([](auto u, auto v) { return u / v; }, a, b);
}
inline Floats operator+(Floats a, float b) { return a + splat(b); }
inline Floats operator-(Floats a, float b) { return a - splat(b); }
inline Floats operator*(Floats a, float b) { return a * splat(b); }

// Comparisons return -1 (true) or 0 (false) per lane, like the instructions of the processor.
template <class T>
inline Ints operator>(Lanes<T> a, Lanes<T> b) {
  return each<Ints>([](auto u, auto v) { return u > v; }, a, b);
}
template <class T>
inline Ints operator==(Lanes<T> a, Lanes<T> b) {
  return each<Ints>([](auto u, auto v) { return u == v; }, a, b);
}

template <class T>
inline Lanes<T> choose(Ints where, Lanes<T> a, Lanes<T> b) {
  return each<Lanes<T>>([](auto w, auto u, auto v) { return w ? u : v; }, where, a, b);
}

// Loads each native vector separately, because one memcpy of all would go through memory.
template <class T>
[[gnu::always_inline]] inline Lanes<T> read(const T* p) {
  Lanes<T> v;
#pragma GCC unroll 4
  for (int i = 0; i < v.kParts; ++i) std::memcpy(&v.part[i], p + i * v.kNative, sizeof v.part[i]);
  return v;
}
inline Floats load(const float* p) { return read(p); }
template <class To, class T>
[[gnu::always_inline]] inline void write(To* p, const Lanes<T>& v) {
#pragma GCC unroll 4
  for (int i = 0; i < v.kParts; ++i) std::memcpy(p + i * v.kNative, &v.part[i], sizeof v.part[i]);
}
inline void store(float* p, const Floats& v) { write(p, v); }

inline Ints indices_from(int begin) {
  constexpr int32_t kFirst[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return read(kFirst) + splat(static_cast<int32_t>(begin));
}

// Returns a mask whose bit i is set if lane i is not 0. A NaN is not 0.
inline uint32_t nonzero(const Floats& v) {
#if defined(__x86_64__) && TENGEN_VECTOR_BYTES == 64
  return _mm512_cmp_ps_mask(v.part[0], Floats::Native{}, _CMP_NEQ_UQ);
#else
  uint32_t bits = 0;
#pragma GCC unroll 4
  for (int i = 0; i < v.kParts; ++i) {
#if defined(__x86_64__) && TENGEN_VECTOR_BYTES == 32
    const int part = _mm256_movemask_ps(_mm256_cmp_ps(v.part[i], Floats::Native{}, _CMP_NEQ_UQ));
#elif defined(__x86_64__)
    const int part = _mm_movemask_ps(_mm_cmpneq_ps(v.part[i], Floats::Native{}));
#else
    int part = 0;
    for (int lane = 0; lane < v.kNative; ++lane) part |= (v.part[i][lane] != 0.0f) << lane;
#endif
    bits |= static_cast<uint32_t>(part) << i * v.kNative;
  }
  return bits;
#endif
}

// Returns 2^k for integer k in [-126, 127].
inline Floats power_of_two(Floats k) {
  return each<Floats>(
      [](auto v) {
        const Ints::Native exponent = (__builtin_convertvector(v, Ints::Native) + 127) << 23;
        return reinterpret_cast<Floats::Native>(exponent);
      },
      k);
}

// Reduces the lanes to one in four steps, in the same order for every instruction set.
template <class T, class F>
[[gnu::always_inline]] inline T halve(Lanes<T> v, F&& combine) {
#pragma GCC unroll 4
  for (int width = Lanes<T>::kParts / 2; width > 0; width /= 2) {
#pragma GCC unroll 4
    for (int i = 0; i < width; ++i) v.part[i] = combine(v.part[i], v.part[i + width]);
  }
  const auto whole = v.part[0];
#if TENGEN_VECTOR_BYTES == 64
  const auto v8 = combine(__builtin_shufflevector(whole, whole, 0, 1, 2, 3, 4, 5, 6, 7),
                          __builtin_shufflevector(whole, whole, 8, 9, 10, 11, 12, 13, 14, 15));
#else
  const auto v8 = whole;
#endif
#if TENGEN_VECTOR_BYTES >= 32
  const auto v4 = combine(__builtin_shufflevector(v8, v8, 0, 1, 2, 3),
                          __builtin_shufflevector(v8, v8, 4, 5, 6, 7));
#else
  const auto v4 = v8;
#endif
  const auto v2 = combine(v4, __builtin_shufflevector(v4, v4, 2, 3, 0, 1));
  return combine(v2, __builtin_shufflevector(v2, v2, 1, 0, 3, 2))[0];
}

inline float reduce_sum(Floats v) {
  return halve(v, [](auto a, auto b) { return a + b; });
}
inline float reduce_max(Floats v) {
  return halve(v, [](auto a, auto b) { return a > b ? a : b; });
}
inline int32_t reduce_min(Ints v) {
  return halve(v, [](auto a, auto b) { return a < b ? a : b; });
}
