#include "cls.hpp"
#include <cstdio>
#include <vector>

int main() {
  std::vector<float> x(3 * 48 * 192, 0.5F), y(2);
  ptc::cls::Model model;
  ptc::cls::Context(model).run(x, y).or_throw();
  std::printf("%.6f %.6f\n", y[0], y[1]);
}
