// Causal softmax attention of one tile in lane form.
#pragma once

#include "tile.h"

namespace {

constexpr int LANES = D * TILE;  // reals of one position in lane form
constexpr int PAIRS = POSITIONS * (POSITIONS + 1) / 2;
constexpr real SCALE = 0.353553390593273762;  // 1 / sqrt(d_head)

// Where the pattern of query i, key 0 of a head is kept.
INLINE int pattern_at(int head, int query) { return (head * PAIRS + query * (query + 1) / 2) * TILE; }

// The features of one head at one position, problems g to g + L.
INLINE void head_of(const real* x, int position, int head, int g, vec (&out)[DH]) {
  for (int f = 0; f < DH; f++) out[f] = load(x + position * LANES + (head * DH + f) * TILE + g);
}

INLINE vec dot(const vec (&a)[DH], const real* x, int position, int head, int g) {
  const real* at = x + position * LANES + head * DH * TILE + g;
  vec even = a[0] * load(at), odd = a[1] * load(at + TILE);
  for (int f = 2; f < DH; f += 2) {
    even += a[f] * load(at + f * TILE);
    odd += a[f + 1] * load(at + (f + 1) * TILE);
  }
  return even + odd;
}

// z = softmax(q k^T / sqrt(d_head)) v for queries [first, end); keeps the pattern when `pattern` is given.
// q, k, v, z are [position][feature][problem].
void attend(const real* q, const real* k, const real* v, real* z, real* pattern, int first, int end) {
  for (int head = 0; head < HEADS; head++)
    for (int g = 0; g < TILE; g += L)
      for (int i = first; i < end; i++) {
        vec query[DH], score[POSITIONS], sum[DH] = {};
        head_of(q, i, head, g, query);
        for (int f = 0; f < DH; f++) query[f] *= SCALE;
        vec most = all(-1e30), total = {};
        for (int j = 0; j <= i; j++) {
          score[j] = dot(query, k, j, head, g);
          most = larger(most, score[j]);
        }
        for (int j = 0; j <= i; j++) {
          score[j] = exp_of(score[j] - most);
          total += score[j];
        }
        const vec share = 1 / total;
        real* kept = pattern ? pattern + pattern_at(head, i) + g : nullptr;
        for (int j = 0; j <= i; j++) {
          const vec p = score[j] * share;
          if (kept) store(kept + j * TILE, p);
          const real* at = v + j * LANES + head * DH * TILE + g;
          for (int f = 0; f < DH; f++) sum[f] += p * load(at + f * TILE);
        }
        for (int f = 0; f < DH; f++) store(z + i * LANES + (head * DH + f) * TILE + g, sum[f]);
      }
}

}  // namespace
