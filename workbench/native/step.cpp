// Loss and gradients of one batch: cross-entropy of the five answer digits, given everything before each.
//
// Sixteen problems at a time go forward and backward while they are in the cache. The last layer's queries, MLP and
// unembedding exist only at the five answer positions; layer 0 reads its queries, keys and values from tables.
#include <cmath>
#include <memory>

#include "attention_backward.h"
#include "tile_forward.h"

namespace {

struct Work {
  Decoder decoder;
  Gradients gradients;
  std::vector<Activations> layers;
  Lanes lanes_of;
  alignas(64) float q[ROWS * D];
  alignas(64) float logits[ANSWERS * TILE * V], lanes[V * TILE];
  alignas(64) float dx[ROWS * D], dmid[ROWS * D], dhidden[ROWS * M], dgate[ROWS * M];
  alignas(64) float dz[ROWS * D], dq[ROWS * D], dk[ROWS * D], dv[ROWS * D], dqkv[ROWS * 2 * D];
};

// Residuals at the answer positions, out to or in from [problem][5][D] arrays.
void residuals_out(const float* rows, int first, float* to, const Tile& tile) {
  for (int p = FIRST; p < POSITIONS; p++)
    for (int i = 0; i < tile.problems; i++)
      std::memcpy(to + (i * ANSWERS + p - FIRST) * D, rows + ((p - first) * TILE + i) * D, sizeof(float) * D);
}

void residuals_in(const float* from, int first, float* rows, const Tile& tile) {
  for (int p = FIRST; p < POSITIONS; p++)
    for (int i = 0; i < tile.problems; i++)
      for (int d = 0; d < D; d++)
        rows[((p - first) * TILE + i) * D + d] += from[(i * ANSWERS + p - FIRST) * D + d];
}

// Cross-entropy of one tile, summed; the logits become scale times their gradient. What falls on the other tokens is
// summed by itself: near 1, `1 - p` would keep few digits of it.
double cross_entropy(Work& work, const Tile& tile, float scale) {
  rows_times<D, V, false>(work.layers.back().out, work.decoder.U, work.logits, ANSWERS * TILE);
  double loss = 0;
  for (int answer = 0; answer < ANSWERS; answer++) {
    float* rows = work.logits + answer * TILE * V;
    to_lanes<V>([&](int i) { return rows + i * V; }, work.lanes);
    for (int g = 0; g < TILE; g += L) {
      const auto logit = [&](int t) { return work.lanes + t * TILE + g; };
      ivec target = {};
      for (int i = 0; i < L; i++) target[i] = tile.of(g + i)[FIRST + 1 + answer];
      vec most = load(logit(0)), asked = {}, right = {}, wrong = {}, counts = {};
      for (int t = 1; t < KINDS; t++) most = larger(most, load(logit(t)));
      for (int t = 0; t < KINDS; t++) {
        const vec e = exp_of(load(logit(t)) - most);
        asked = target == t ? load(logit(t)) : asked;
        right = target == t ? e : right;
        wrong += target == t ? vec{} : e;
        store(logit(t), e);
      }
      for (int i = 0; i < L; i++) counts[i] = g + i < tile.problems ? scale : 0.0f;
      for (int i = 0; i < std::min(L, tile.problems - g); i++)
        loss += std::log(double(right[i]) + double(wrong[i])) + (double(most[i]) - double(asked[i]));
      const vec share = counts / (right + wrong);
      for (int t = 0; t < KINDS; t++) store(logit(t), share * (target == t ? -wrong : load(logit(t))));
    }
    to_rows<V>(work.lanes, rows, V);
  }
  return loss;
}

// From d resid_post in `work.dx` to d resid_mid in `work.dmid`, and the MLP's weights.
void mlp_backward(Work& work, int l, int rows) {
  const Activations& a = work.layers[l];
  const LayerT& t = work.decoder.transposed[l];
  Layer& g = work.gradients.layers[l];
  rows_times<D, M, false>(work.dx, t.out, work.dhidden, rows);
  add_outer<M, D>(a.post, work.dx, g.out, rows);
  for (int i = 0; i < rows * M; i += L) {
    const vec d = load(work.dhidden + i), in = load(a.in + i);
    if (work.decoder.bilinear) store(work.dgate + i, d * in);
    store(work.dhidden + i, work.decoder.bilinear ? d * load(a.gate + i) : (in > 0 ? d : vec{}));
  }
  add_outer<D, M>(a.mid, work.dhidden, g.in, rows);
  std::memcpy(work.dmid, work.dx, sizeof(float) * rows * D);
  rows_times<M, D, true>(work.dhidden, t.in, work.dmid, rows);
  if (work.decoder.bilinear) {
    add_outer<D, M>(a.mid, work.dgate, g.gate, rows);
    rows_times<M, D, true>(work.dgate, t.gate, work.dmid, rows);
  }
}

// Sums rows of gradients where the table was read.
template <int N>
void add_to_table(float* table, const float* rows, const Tile& tile, int first) {
  for (int p = first; p < POSITIONS; p++)
    for (int i = 0; i < tile.problems; i++) {
      float* to = table + (p * V + tile.of(i)[p]) * N;
      const float* from = rows + ((p - first) * TILE + i) * N;
      for (int n = 0; n < N; n += L) store(to + n, load(to + n) + load(from + n));
    }
}

// From d resid_mid in `work.dmid` to d resid_pre at every position in `work.dx`, and attention's weights.
void attention_backward(Work& work, const Tile& tile, int l, int first, int rows) {
  const Activations& a = work.layers[l];
  const LayerT& t = work.decoder.transposed[l];
  Layer& g = work.gradients.layers[l];
  rows_times<D, D, false>(work.dmid, t.O, work.q, rows);
  add_outer<D, D>(a.z, work.dmid, g.O, rows);
  rows_to_lanes(work.q, work.dz, first, POSITIONS);
  attend_backward(a.q, a.k, a.v, a.pattern, work.dz, work.dq, work.dk, work.dv, first);
  lanes_to_rows(work.dq + first * LANES, work.q, 0, POSITIONS - first);
  lanes_to_rows(work.dk, work.dqkv, 0, POSITIONS, 2 * D);
  lanes_to_rows(work.dv, work.dqkv + D, 0, POSITIONS, 2 * D);
  if (l == 0) {
    add_to_table<D>(work.gradients.x, work.dmid, tile, first);
    add_to_table<D>(work.gradients.q, work.q, tile, first);
    add_to_table<2 * D>(work.gradients.kv, work.dqkv, tile, 0);
    return;
  }
  add_outer<D, D>(a.x, work.q, g.Q, rows);
  add_outer<D, 2 * D>(work.layers[l - 1].out, work.dqkv, g.KV, ROWS);
  std::memset(work.dx, 0, sizeof(float) * first * TILE * D);
  std::memcpy(work.dx + first * TILE * D, work.dmid, sizeof(float) * rows * D);
  rows_times<D, D, true>(work.q, t.Q, work.dx + first * TILE * D, rows);
  rows_times<2 * D, D, true>(work.dqkv, t.KV, work.dx, ROWS);
}

// From the table's gradients to those of layer 0's projections, W_E and W_pos.
void tables_backward(Work& work, float* dE, float* dpos) {
  const Decoder& decoder = work.decoder;
  Gradients& g = work.gradients;
  add_outer<D, D>(decoder.x, g.q, g.layers[0].Q, TABLE);
  add_outer<D, 2 * D>(decoder.x, g.kv, g.layers[0].KV, TABLE);
  rows_times<D, D, true>(g.q, decoder.transposed[0].Q, g.x, TABLE);
  rows_times<2 * D, D, true>(g.kv, decoder.transposed[0].KV, g.x, TABLE);
  std::memset(dE, 0, sizeof(float) * KINDS * D);
  std::memset(dpos, 0, sizeof(float) * (POSITIONS + 1) * D);
  for (int p = 0; p < POSITIONS; p++)
    for (int t = 0; t < KINDS; t++)
      for (int d = 0; d < D; d++) {
        dE[t * D + d] += g.x[(p * V + t) * D + d];
        dpos[p * D + d] += g.x[(p * V + t) * D + d];
      }
}

// The inverse of `heads_side_by_side`.
void heads_apart(const float* W, float* out, int stride, int offset) {
  for (int head = 0; head < HEADS; head++)
    for (int d = 0; d < D; d++)
      std::memcpy(out + (head * D + d) * DH, W + d * stride + offset + head * DH, sizeof(float) * DH);
}

void unpack(Work& work, float* const* grads) {
  tables_backward(work, grads[0], grads[1]);
  grads += 2;
  for (Layer& g : work.gradients.layers) {
    heads_apart(g.Q, *grads++, D, 0);
    heads_apart(g.KV, *grads++, 2 * D, 0);
    heads_apart(g.KV, *grads++, 2 * D, D);
    std::memcpy(*grads++, g.O, sizeof g.O);
    if (work.decoder.bilinear) std::memcpy(*grads++, g.gate, sizeof g.gate);
    std::memcpy(*grads++, g.in, sizeof g.in);
    std::memcpy(*grads++, g.out, sizeof g.out);
  }
  for (int d = 0; d < D; d++) std::memcpy(*grads + d * KINDS, work.gradients.U + d * V, sizeof(float) * KINDS);
}

void clear(Gradients& g, int n_layers) {
  g.layers.assign(n_layers, Layer{});
  std::memset(g.x, 0, sizeof g.x);
  std::memset(g.q, 0, sizeof g.q);
  std::memset(g.kv, 0, sizeof g.kv);
  std::memset(g.U, 0, sizeof g.U);
}

}  // namespace

// Returns the summed cross-entropy of n problems over their five digits. With `grads`, writes the gradients of
// scale * that sum + <dmid, mid> + <dpost, post>. `mid`, `post`, `dmid`, `dpost` are null or one pointer a layer, each
// null or [n][5][D]: resid_mid and resid_post at positions 10..14. Tokens are [n][16], each below 13.
extern "C" double workbench_step(const float* const* weights, int n_layers, int bilinear, const uint8_t* tokens, int n,
                                 float scale, float* const* grads, float* const* mid, float* const* post,
                                 const float* const* dmid, const float* const* dpost) {
  const NoDenormals here;
  static thread_local std::unique_ptr<Work> work;  // a few megabytes, kept for the next step
  if (!work) work = std::make_unique<Work>();
  pack(work->decoder, weights, n_layers, bilinear != 0);
  work->layers.resize(n_layers);
  clear(work->gradients, n_layers);
  double loss = 0;
  for (int start = 0; start < n; start += TILE) {
    const Tile tile{tokens + 16 * start, std::min(TILE, n - start)};
    const int offset = start * ANSWERS * D;
    forward(work->decoder, work->layers, work->lanes_of, tile, true);
    for (int l = 0; l < n_layers; l++) {
      const int first = first_query(work->decoder, l);
      if (mid && mid[l]) residuals_out(work->layers[l].mid, first, mid[l] + offset, tile);
      if (post && post[l]) residuals_out(work->layers[l].out, first, post[l] + offset, tile);
    }
    loss += cross_entropy(*work, tile, scale);
    if (!grads) continue;
    add_outer<D, V>(work->layers.back().out, work->logits, work->gradients.U, ANSWERS * TILE);
    rows_times<V, D, false>(work->logits, work->decoder.UT, work->dx, ANSWERS * TILE);
    for (int l = n_layers - 1; l >= 0; l--) {
      const int first = first_query(work->decoder, l), rows = (POSITIONS - first) * TILE;
      if (dpost && dpost[l]) residuals_in(dpost[l] + offset, first, work->dx, tile);
      mlp_backward(*work, l, rows);
      if (dmid && dmid[l]) residuals_in(dmid[l] + offset, first, work->dmid, tile);
      attention_backward(*work, tile, l, first, rows);
    }
  }
  if (grads) unpack(*work, grads);
  return loss;
}

// The compiler that made this build.
extern "C" const char* workbench_compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

// Whether this processor has the instructions this build uses.
extern "C" int workbench_runs_here() {
#if defined(__AVX512F__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#elif defined(__AVX2__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return 1;
#endif
}
