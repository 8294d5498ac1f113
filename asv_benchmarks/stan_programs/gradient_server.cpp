// Appended to the model that stanc writes: a process that answers for one model and one set of data, on standard input and output.
//
// It first reads the data: the number of variables, then for each its name, "i" or "r", the number of dimensions and those, on
// lines; then the elements of all of them in binary, columns first. It answers with the number of unknowns. Each request is a
// line and a point in binary: "density" answers with the log density, all constants kept, and its gradient; "time COUNT" with the
// seconds of so many gradients in a row, constants dropped, as a sampler asks for them.
#include <stan/io/array_var_context.hpp>
#include <stan/model/log_prob_grad.hpp>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace server {

template <typename T>
void read_elements(std::vector<T>& all, size_t count) {
  std::vector<T> elements(count);
  std::cin.read(reinterpret_cast<char*>(elements.data()), count * sizeof(T));
  all.insert(all.end(), elements.begin(), elements.end());
}

template <typename T>
void answer(const T* elements, size_t count) {
  std::cout.write(reinterpret_cast<const char*>(elements), count * sizeof(T));
  std::cout.flush();
}

stan::io::array_var_context read_data() {
  std::vector<std::string> names[2];
  std::vector<std::vector<size_t>> shapes[2];
  std::vector<int> integers;
  std::vector<double> reals;
  std::vector<std::pair<bool, size_t>> order;
  std::string line;
  std::getline(std::cin, line);
  for (int left = std::stoi(line); left > 0; --left) {
    std::getline(std::cin, line);
    std::istringstream words(line);
    std::string name, kind;
    size_t dimensions, count = 1;
    words >> name >> kind >> dimensions;
    std::vector<size_t> shape(dimensions);
    for (size_t& length : shape) {
      words >> length;
      count *= length;
    }
    const bool real = kind == "r";
    names[real].push_back(name);
    shapes[real].push_back(shape);
    order.emplace_back(real, count);
  }
  for (auto& each : order) {
    if (each.first) read_elements(reals, each.second);
    else read_elements(integers, each.second);
  }
  return stan::io::array_var_context(names[1], reals, shapes[1], names[0], integers, shapes[0]);
}

}  // namespace server

int main() {
  std::ios::sync_with_stdio(false);
  try {
    auto data = server::read_data();
    auto& model = new_model(data, 0, &std::cerr);
    const long unknowns = model.num_params_r();
    server::answer(&unknowns, 1);
    std::vector<int> none;
    std::vector<double> gradient;
    std::string line, request;
    while (std::getline(std::cin, line)) {
      std::vector<double> point;
      server::read_elements(point, unknowns);
      std::istringstream words(line);
      words >> request;
      if (request == "density") {
        const double value = stan::model::log_prob_grad<false, true>(model, point, none, gradient, &std::cerr);
        gradient.insert(gradient.begin(), value);
        server::answer(gradient.data(), gradient.size());
      } else {
        long count;
        words >> count;
        const auto start = std::chrono::steady_clock::now();
        for (long i = 0; i < count; ++i) stan::model::log_prob_grad<true, true>(model, point, none, gradient, nullptr);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        server::answer(&seconds, 1);
      }
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
