// Sixteen problems at a time: vectors, matrix products over rows, transposition, exp.
//
// Two layouts. Row form: one row of features a (position, problem), row = position * TILE + problem; matrix products
// run here. Lane form: [feature][problem], the problems innermost; attention runs here, since its heads are only 8 wide.
// Every sum has one fixed order that does not depend on the vector length, so AVX2 and AVX-512 builds agree.
//
// REAL is float, unless a file defines it as double before it includes this. All is local to that file.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#ifndef REAL
#define REAL float
#endif

namespace {

typedef REAL real;
constexpr bool DOUBLE = sizeof(real) == 8;

#if defined(__AVX512F__)
constexpr int BYTES = 64;  // of a vector
constexpr int R = 8;       // rows a register block holds; with two vectors a row, 16 of 32 registers
#else
constexpr int BYTES = 32;
constexpr int R = 4;  // 8 of 16 registers
#endif
constexpr int L = BYTES / sizeof(real);  // numbers a vector

constexpr int TILE = 16;         // problems
constexpr int D = 32;            // d_model
constexpr int HEADS = 4, DH = 8; // heads and their width; HEADS * DH == D
constexpr int M = 64;            // d_mlp
constexpr int V = 16;            // the 13 token kinds, padded
constexpr int KINDS = 13;
constexpr int POSITIONS = 15;    // positions read
constexpr int FIRST = 10;        // the first of the five answer positions
constexpr int ANSWERS = 5;

template <bool wide> struct Whole { typedef int32_t type; };
template <> struct Whole<true> { typedef int64_t type; };
typedef Whole<DOUBLE>::type whole;

typedef real vec __attribute__((vector_size(BYTES)));
typedef real loose __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));  // in memory, anywhere
typedef whole ivec __attribute__((vector_size(BYTES)));

#define INLINE inline __attribute__((always_inline))

INLINE vec load(const real* from) { return *reinterpret_cast<const loose*>(from); }
INLINE void store(real* to, vec value) { *reinterpret_cast<loose*>(to) = value; }
INLINE vec all(real value) { return vec{} + value; }
INLINE vec larger(vec a, vec b) { return a > b ? a : b; }

// Y[r] = X[r] W, or += with ADD; `rows` is a multiple of TILE, W is [K][N]. Sums run over k in order and are added last,
// so that they round at their own size.
template <int K, int N, bool ADD>
void rows_times(const real* X, const real* W, real* Y, int rows) {
  constexpr int C = N >= 2 * L ? 2 : 1;  // vectors a register block is wide
  for (int c0 = 0; c0 < N; c0 += C * L) {
    for (int r0 = 0; r0 < rows; r0 += R) {
      vec sum[R][C] = {};
      const real* x = X + r0 * K;
      for (int k = 0; k < K; k++) {
        vec w[C];
        for (int c = 0; c < C; c++) w[c] = load(W + k * N + c0 + c * L);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
          for (int c = 0; c < C; c++) sum[r][c] += x[r * K + k] * w[c];
      }
      for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) {
          real* at = Y + (r0 + r) * N + c0 + c * L;
          store(at, ADD ? load(at) + sum[r][c] : sum[r][c]);
        }
    }
  }
}

// W[k][n] += sum over rows of X[r][k] Y[r][n]: the rows are summed first, then added to what W holds.
template <int K, int N>
void add_outer(const real* X, const real* Y, real* W, int rows) {
  constexpr int C = N >= 2 * L ? 2 : 1;
  for (int k0 = 0; k0 < K; k0 += R) {
    for (int c0 = 0; c0 < N; c0 += C * L) {
      vec sum[R][C] = {};
      for (int r = 0; r < rows; r++) {
        vec y[C];
        for (int c = 0; c < C; c++) y[c] = load(Y + r * N + c0 + c * L);
        const real* x = X + r * K + k0;
#pragma GCC unroll 8
        for (int k = 0; k < R; k++)
          for (int c = 0; c < C; c++) sum[k][c] += x[k] * y[c];
      }
      for (int k = 0; k < R; k++)
        for (int c = 0; c < C; c++) {
          real* at = W + (k0 + k) * N + c0 + c * L;
          store(at, load(at) + sum[k][c]);
        }
    }
  }
}

// One step of Eklundh's transposition: exchange the off-diagonal S x S blocks of two rows.
template <int S, int... E>
INLINE void exchange(vec& a, vec& b, std::integer_sequence<int, E...>) {
  const vec upper = __builtin_shufflevector(a, b, (E & S ? E - S + L : E)...);
  b = __builtin_shufflevector(a, b, (E & S ? E + L : E + S)...);
  a = upper;
}

template <int S>
INLINE void exchange_rows(vec (&rows)[L]) {
  for (int i = 0; i < L; i++)
    if (!(i & S)) exchange<S>(rows[i], rows[i + S], std::make_integer_sequence<int, L>{});
}

INLINE void transpose(vec (&rows)[L]) {
  exchange_rows<1>(rows);
  exchange_rows<2>(rows);
  if constexpr (L > 4) exchange_rows<4 % L>(rows);
  if constexpr (L > 8) exchange_rows<8 % L>(rows);
}

// Columns [0, N) of TILE rows into lane form: out[n][problem]. `row(i)` is where row i begins.
template <int N, class Row>
INLINE void to_lanes(Row row, real* out) {
  for (int c = 0; c < N; c += L)
    for (int g = 0; g < TILE; g += L) {
      vec block[L];
      for (int i = 0; i < L; i++) block[i] = load(row(g + i) + c);
      transpose(block);
      for (int i = 0; i < L; i++) store(out + (c + i) * TILE + g, block[i]);
    }
}

// The inverse, into rows of stride `stride`.
template <int N>
INLINE void to_rows(const real* lanes, real* out, int stride) {
  for (int c = 0; c < N; c += L)
    for (int g = 0; g < TILE; g += L) {
      vec block[L];
      for (int i = 0; i < L; i++) block[i] = load(lanes + (c + i) * TILE + g);
      transpose(block);
      for (int i = 0; i < L; i++) store(out + (g + i) * stride + c, block[i]);
    }
}

// While one lives, results too small for a normal float are zero: shares of attention below 1e-38 would otherwise take
// a hundred times as long.
class NoDenormals {
#if defined(__SSE__)
  unsigned before = __builtin_ia32_stmxcsr();

 public:
  NoDenormals() { __builtin_ia32_ldmxcsr(before | 0x8040); }
  ~NoDenormals() { __builtin_ia32_ldmxcsr(before); }
#endif
};

// exp of values <= 0, to about one unit in the last place: Cody & Waite's reduction by n ln 2, a Taylor polynomial on
// |r| <= ln(2)/2 (degree 7 leaves less than 6e-9 of a float, degree 13 less than 4e-18 of a double), times 2^n. Where
// that would no longer be a normal number, 0.
INLINE vec exp_of(vec given) {
  constexpr real LOWEST = DOUBLE ? -708 : -87;
  constexpr real SHIFT = DOUBLE ? 6755399441055744.0 : 12582912.0;  // 1.5 * 2^52 or 2^23: adding it rounds
  constexpr real LN2 = DOUBLE ? 6.93147180369123816490e-01 : 0.693359375;  // its first digits, few enough that n LN2 is
  constexpr real REST = DOUBLE ? 1.90821492927058770002e-10 : -2.12194440e-4;  // exact, and the others
  const vec x = larger(given, all(LOWEST));
  const vec shifted = x * real(1.44269504088896341) + SHIFT;
  const vec n = shifted - SHIFT;
  vec r = x - n * LN2;
  r = r - n * REST;
  vec p = all(DOUBLE ? 1.0 / 6227020800 : 1.0 / 5040);
  if constexpr (DOUBLE)
    for (double f : {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0}) p = p * r + real(1 / f);
  for (double f : {720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0}) p = p * r + real(1 / f);
  const ivec scale = ((ivec)shifted - (ivec)all(SHIFT) + (DOUBLE ? 1023 : 127)) << (DOUBLE ? 52 : 23);
  return given < LOWEST ? vec{} : p * (vec)scale;
}

}  // namespace
