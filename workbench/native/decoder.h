// The decoder's weights as the kernels read them, and its forward pass over one tile.
//
// Tensors come and go under TransformerLens's names, in the order of `Architecture.shapes`: W_E, W_pos, then a layer's
// W_Q, W_K, W_V, W_O, (W_gate,) W_in, W_out, then W_U. Layer 0 reads token plus position, of which there are only 13 x
// 15: its queries, keys and values are tables.
#pragma once

#include <vector>

#include "attention.h"

namespace {

constexpr int TABLE = POSITIONS * V;  // rows of a table, position * V + token
constexpr int ROWS = POSITIONS * TILE;

struct Layer {  // [in][out]; the T ones transposed; keys and values side by side
  real Q[D * D], KV[D * 2 * D], O[D * D], gate[D * M], in[D * M], out[M * D];
};

struct LayerT {
  real Q[D * D], KV[2 * D * D], O[D * D], gate[M * D], in[M * D], out[D * M];
};

struct Decoder {
  int n_layers;
  bool bilinear;
  std::vector<Layer> layers;
  std::vector<LayerT> transposed;
  real x[TABLE * D], q[TABLE * D], kv[TABLE * 2 * D];  // layer 0's tables
  real U[D * V], UT[V * D];
};

// Gradients in the same packed form.
struct Gradients {
  std::vector<Layer> layers;
  real x[TABLE * D], q[TABLE * D], kv[TABLE * 2 * D], U[D * V];
};

void transposed(const real* W, real* T, int rows, int columns) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) T[c * rows + r] = W[r * columns + c];
}

// W[head][d_model][d_head] into columns head * DH + f, starting at `offset`, of rows `stride` wide.
void heads_side_by_side(const real* W, real* out, int stride, int offset) {
  for (int head = 0; head < HEADS; head++)
    for (int d = 0; d < D; d++)
      std::memcpy(out + d * stride + offset + head * DH, W + (head * D + d) * DH, sizeof(real) * DH);
}

void pack(Decoder& decoder, const real* const* weights, int n_layers, bool bilinear) {
  decoder.n_layers = n_layers;
  decoder.bilinear = bilinear;
  decoder.layers.resize(n_layers);
  decoder.transposed.resize(n_layers);
  const real *E = *weights++, *pos = *weights++;
  for (int l = 0; l < n_layers; l++) {
    Layer& w = decoder.layers[l];
    LayerT& t = decoder.transposed[l];
    heads_side_by_side(*weights++, w.Q, D, 0);
    heads_side_by_side(*weights++, w.KV, 2 * D, 0);
    heads_side_by_side(*weights++, w.KV, 2 * D, D);
    std::memcpy(w.O, *weights++, sizeof w.O);
    if (bilinear) std::memcpy(w.gate, *weights++, sizeof w.gate);
    std::memcpy(w.in, *weights++, sizeof w.in);
    std::memcpy(w.out, *weights++, sizeof w.out);
    transposed(w.Q, t.Q, D, D);
    transposed(w.KV, t.KV, D, 2 * D);
    transposed(w.O, t.O, D, D);
    if (bilinear) transposed(w.gate, t.gate, D, M);
    transposed(w.in, t.in, D, M);
    transposed(w.out, t.out, M, D);
  }
  std::memset(decoder.U, 0, sizeof decoder.U);
  for (int d = 0; d < D; d++) std::memcpy(decoder.U + d * V, *weights + d * KINDS, sizeof(real) * KINDS);
  transposed(decoder.U, decoder.UT, D, V);
  std::memset(decoder.x, 0, sizeof decoder.x);
  for (int p = 0; p < POSITIONS; p++)
    for (int t = 0; t < KINDS; t++)
      for (int d = 0; d < D; d++) decoder.x[(p * V + t) * D + d] = E[t * D + d] + pos[p * D + d];
  rows_times<D, D, false>(decoder.x, decoder.layers[0].Q, decoder.q, TABLE);
  rows_times<D, 2 * D, false>(decoder.x, decoder.layers[0].KV, decoder.kv, TABLE);
}

// What one layer computes on one tile; rows count from its first query position.
struct Activations {
  alignas(64) real x[ROWS * D];                                                  // resid_pre
  alignas(64) real q[ROWS * D], k[ROWS * D], v[ROWS * D], pattern[HEADS * PAIRS * TILE];  // lane form
  alignas(64) real z[ROWS * D], mid[ROWS * D];                                   // rows
  alignas(64) real gate[ROWS * M], in[ROWS * M], post[ROWS * M], out[ROWS * D];  // `gate` only when bilinear
};

// post = ReLU(in), or gate * in.
void activate(const real* gate, const real* in, real* post, int count, bool bilinear) {
  for (int i = 0; i < count; i += L) {
    const vec value = load(in + i);
    store(post + i, bilinear ? load(gate + i) * value : larger(value, vec{}));
  }
}

// resid_mid and resid_post of `rows` rows from resid_pre `x` and attention's z.
void mix_and_mlp(const Layer& w, bool bilinear, const real* x, Activations& a, int rows) {
  std::memcpy(a.mid, x, sizeof(real) * rows * D);
  rows_times<D, D, true>(a.z, w.O, a.mid, rows);
  rows_times<D, M, false>(a.mid, w.in, a.in, rows);
  if (bilinear) rows_times<D, M, false>(a.mid, w.gate, a.gate, rows);
  activate(a.gate, a.in, a.post, rows * M, bilinear);
  std::memcpy(a.out, a.mid, sizeof(real) * rows * D);
  rows_times<M, D, true>(a.post, w.out, a.out, rows);
}

// Rows of keys and values side by side, positions [begin, end), into lane form.
void keys_and_values(const real* kv, real* k, real* v, int begin, int end) {
  for (int p = begin; p < end; p++) {
    const real* rows = kv + (p - begin) * TILE * 2 * D;
    to_lanes<D>([&](int i) { return rows + i * 2 * D; }, k + p * LANES);
    to_lanes<D>([&](int i) { return rows + i * 2 * D + D; }, v + p * LANES);
  }
}

void rows_to_lanes(const real* rows, real* lanes, int begin, int end) {
  for (int p = begin; p < end; p++)
    to_lanes<D>([&](int i) { return rows + ((p - begin) * TILE + i) * D; }, lanes + p * LANES);
}

void lanes_to_rows(const real* lanes, real* rows, int begin, int end, int stride = D) {
  for (int p = begin; p < end; p++) to_rows<D>(lanes + p * LANES, rows + (p - begin) * TILE * stride, stride);
}

}  // namespace
