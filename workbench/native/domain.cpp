// The five answer digits of every problem with one of sixteen first operands: 160,000 problems at a time.
//
// The sixteen lanes are sixteen first operands; the second operand counts from 0000 to 9999 as an odometer does. Keys
// and values of a position stay as they are until one of the tokens up to it changes, so positions 0 to 4 are computed
// once, 5 to 7 in every thousandth, hundredth and tenth problem, and only 8 to 14 in each.
#include <memory>

#include "digits.h"
#include "tile_forward.h"

namespace {

constexpr int OPERANDS = 10000;
constexpr uint8_t PLUS = 10, MINUS = 11, EQUALS = 12;

struct Walk {
  Decoder decoder;
  std::vector<Activations> layers;  // k and v are kept from problem to problem, the rest is scratch
  uint8_t tokens[POSITIONS][TILE];
  Lanes lanes;
  Digits digits;
};

// Computes positions [begin, end), given the keys and values before them; the last layer only where digits are read.
void advance(Walk& walk, int begin, int end) {
  const Decoder& decoder = walk.decoder;
  for (int l = 0; l < decoder.n_layers; l++) {
    Activations& a = walk.layers[l];
    const int first = l == decoder.n_layers - 1 && begin < FIRST ? FIRST : begin;
    const int rows = (end - first) * TILE;
    const real* x = a.x;
    if (l == 0) {
      look_up(decoder, a, [&](int p, int i) { return walk.tokens[p][i]; }, begin, end, first);
    } else {
      const real* before = walk.layers[l - 1].out;
      rows_times<D, 2 * D, false>(before, decoder.layers[l].KV, walk.lanes.kv, (end - begin) * TILE);
      keys_and_values(walk.lanes.kv, a.k, a.v, begin, end);
      x = before + (first - begin) * TILE * D;
      if (first < end) {
        rows_times<D, D, false>(x, decoder.layers[l].Q, walk.lanes.q, rows);
        rows_to_lanes(walk.lanes.q, a.q, first, end);
      }
    }
    if (first >= end) return;
    attend(a.q, a.k, a.v, walk.lanes.z, nullptr, first, end);
    lanes_to_rows(walk.lanes.z + first * LANES, a.z, 0, end - first);
    mix_and_mlp(decoder.layers[l], decoder.bilinear, x, a, rows);
  }
}

void write_digits(int value, int count, uint8_t (*tokens)[TILE], int lane) {
  for (int place = count - 1; place >= 0; place--, value /= 10) tokens[place][lane] = uint8_t(value % 10);
}

}  // namespace

// `digits` is [16][10000][5]: for each of the sixteen `operands` and each second operand, the predicted tokens at
// positions 10..14, everything before them given. `near` is [16][10000], bit k for a near-tie at the k-th of them.
extern "C" void workbench_domain(const float* const* weights, int n_layers, int bilinear, const int* operands,
                                 int subtract, int hide_sign, float nearness, uint8_t* digits, uint8_t* near) {
  const NoDenormals here;
  static thread_local std::unique_ptr<Walk> walk;
  if (!walk) walk = std::make_unique<Walk>();
  pack(walk->decoder, weights, n_layers, bilinear != 0);
  walk->layers.resize(n_layers);
  auto* tokens = walk->tokens;
  for (int i = 0; i < TILE; i++) {
    write_digits(operands[i], 4, tokens, i);
    tokens[4][i] = subtract ? MINUS : PLUS;
    tokens[9][i] = EQUALS;
  }
  int begin = 0;
  for (int b = 0; b < OPERANDS; b++) {
    for (int i = 0; i < TILE; i++) {
      write_digits(b, 4, tokens + 5, i);
      const int answer = subtract ? operands[i] - b : operands[i] + b;
      tokens[FIRST][i] = hide_sign ? EQUALS : answer < 0 ? MINUS : PLUS;
      write_digits((answer < 0 ? -answer : answer) / 10, 4, tokens + FIRST + 1, i);
    }
    for (; begin < 8; begin = begin < 5 ? 5 : begin + 1) advance(*walk, begin, begin < 5 ? 5 : begin + 1);
    advance(*walk, 8, POSITIONS);
    read_digits(walk->decoder, walk->layers.back(), walk->digits, nearness, digits + b * ANSWERS, near + b, OPERANDS);
    const int next = b + 1;  // the highest digit that turns says from which position on to begin again
    begin = next % 1000 == 0 ? 5 : next % 100 == 0 ? 6 : next % 10 == 0 ? 7 : 8;
  }
}
