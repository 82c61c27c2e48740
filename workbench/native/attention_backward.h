// The way back through attention, of one tile in lane form.
#pragma once

#include "attention.h"

namespace {

// Gradients of q, k and v from that of z; dk and dv are overwritten, dq is written for queries first..14.
void attend_backward(const real* q, const real* k, const real* v, const real* pattern, const real* dz,
                            real* dq, real* dk, real* dv, int first) {
  std::memset(dk, 0, sizeof(real) * POSITIONS * LANES);
  std::memset(dv, 0, sizeof(real) * POSITIONS * LANES);
  for (int head = 0; head < HEADS; head++)
    for (int g = 0; g < TILE; g += L)
      for (int i = first; i < POSITIONS; i++) {
        vec query[DH], dout[DH], dquery[DH] = {}, dp[POSITIONS], mean = {};
        head_of(q, i, head, g, query);
        head_of(dz, i, head, g, dout);
        for (int f = 0; f < DH; f++) query[f] *= SCALE;
        const real* kept = pattern + pattern_at(head, i) + g;
        for (int j = 0; j <= i; j++) {
          dp[j] = dot(dout, v, j, head, g);
          mean += load(kept + j * TILE) * dp[j];
        }
        for (int j = 0; j <= i; j++) {
          const vec p = load(kept + j * TILE), ds = p * (dp[j] - mean);
          const int at = j * LANES + head * DH * TILE + g;
          for (int f = 0; f < DH; f++) {
            dquery[f] += ds * load(k + at + f * TILE);
            store(dk + at + f * TILE, load(dk + at + f * TILE) + ds * query[f]);
            store(dv + at + f * TILE, load(dv + at + f * TILE) + p * dout[f]);
          }
        }
        for (int f = 0; f < DH; f++) store(dq + i * LANES + (head * DH + f) * TILE + g, dquery[f] * SCALE);
      }
}

}  // namespace
