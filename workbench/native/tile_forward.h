// The decoder's forward pass over sixteen problems, any sixteen.
#pragma once

#include <algorithm>

#include "decoder.h"

namespace {

struct Tile {
  const uint8_t* tokens;  // [16 tokens] a problem
  int problems;           // up to TILE; the lanes beyond repeat the last one and count for nothing
  const uint8_t* of(int i) const { return tokens + 16 * std::min(i, problems - 1); }
};

// Scratch between row form and lane form.
struct Lanes {
  alignas(64) real kv[ROWS * 2 * D], q[ROWS * D], z[ROWS * D];
};

// The last layer computes only what the answer digits are read from.
int first_query(const Decoder& decoder, int layer) { return layer == decoder.n_layers - 1 ? FIRST : 0; }

// Layer 0's keys, values, queries and rows of positions [begin, end), from the tables; `token(p, i)` is a lane's token.
template <class Token>
void look_up(const Decoder& decoder, Activations& a, Token token, int begin, int end, int first) {
  for (int p = begin; p < end; p++) {
    const auto row = [&](int i) { return p * V + token(p, i); };
    to_lanes<D>([&](int i) { return decoder.kv + row(i) * 2 * D; }, a.k + p * LANES);
    to_lanes<D>([&](int i) { return decoder.kv + row(i) * 2 * D + D; }, a.v + p * LANES);
    if (p < first) continue;
    to_lanes<D>([&](int i) { return decoder.q + row(i) * D; }, a.q + p * LANES);
    for (int i = 0; i < TILE; i++)
      std::memcpy(a.x + ((p - first) * TILE + i) * D, decoder.x + row(i) * D, sizeof(real) * D);
  }
}

// Fills the activations of every layer; the attention pattern too when it is asked for.
inline void forward(const Decoder& decoder, std::vector<Activations>& layers, Lanes& lanes, const Tile& tile, bool pattern) {
  for (int l = 0; l < decoder.n_layers; l++) {
    Activations& a = layers[l];
    const int first = first_query(decoder, l), rows = (POSITIONS - first) * TILE;
    if (l == 0) {
      look_up(decoder, a, [&](int p, int i) { return tile.of(i)[p]; }, 0, POSITIONS, first);
    } else {
      const real* x = layers[l - 1].out;
      rows_times<D, 2 * D, false>(x, decoder.layers[l].KV, lanes.kv, ROWS);
      rows_times<D, D, false>(x + first * TILE * D, decoder.layers[l].Q, lanes.q, rows);
      keys_and_values(lanes.kv, a.k, a.v, 0, POSITIONS);
      rows_to_lanes(lanes.q, a.q, first, POSITIONS);
      std::memcpy(a.x, x + first * TILE * D, sizeof(real) * rows * D);
    }
    attend(a.q, a.k, a.v, lanes.z, pattern ? a.pattern : nullptr, first, POSITIONS);
    lanes_to_rows(lanes.z + first * LANES, a.z, 0, POSITIONS - first);
    mix_and_mlp(decoder.layers[l], decoder.bilinear, a.x, a, rows);
  }
}

}  // namespace
