// The predicted digits of one tile, and how sure they are.
#pragma once

#include "decoder.h"

namespace {

struct Digits {
  alignas(64) real logits[ANSWERS * TILE * V], lanes[V * TILE];
};

// The likeliest token at each answer position, and bit k of `near` where the runner-up at the k-th is within `nearness`
// times the largest |logit|. Problem i of the tile writes at digits[i * stride * 5] and near[i * stride].
void read_digits(const Decoder& decoder, const Activations& last, Digits& work, real nearness, uint8_t* digits,
                 uint8_t* near, int stride) {
  rows_times<D, V, false>(last.out, decoder.U, work.logits, ANSWERS * TILE);
  uint8_t close[TILE] = {};
  for (int answer = 0; answer < ANSWERS; answer++) {
    const real* rows = work.logits + answer * TILE * V;
    to_lanes<V>([&](int i) { return rows + i * V; }, work.lanes);
    for (int g = 0; g < TILE; g += L) {
      vec best = load(work.lanes + g), second = all(-1e38), largest = best < 0 ? -best : best;
      ivec kind = {};
      for (int t = 1; t < KINDS; t++) {
        const vec logit = load(work.lanes + t * TILE + g);
        const ivec above = logit > best;
        second = above ? best : larger(second, logit);
        kind = above ? ivec{} + t : kind;
        best = above ? logit : best;
        largest = larger(largest, logit < 0 ? -logit : logit);
      }
      const ivec tie = ~(best - second >= nearness * largest);  // also where they are no numbers
      for (int i = 0; i < L; i++) {
        digits[(g + i) * stride * ANSWERS + answer] = uint8_t(kind[i]);
        close[g + i] |= tie[i] ? 1 << answer : 0;
      }
    }
  }
  for (int i = 0; i < TILE; i++) near[i * stride] = close[i];
}

}  // namespace
