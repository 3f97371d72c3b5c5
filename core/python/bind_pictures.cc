// Conversion of uint8 pictures into network inputs; see core/simd/kernels.h.

#include <nanobind/ndarray.h>

#include "base/error.h"
#include "python/bindings.h"
#include "python/gil.h"
#include "simd/kernels.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tengen {
namespace {

template <class T, int Axes>
using Array = nb::ndarray<T, nb::ndim<Axes>, nb::c_contig, nb::device::cpu>;
using Pictures = Array<const uint8_t, 2>;

void check_sizes(const Pictures& pictures, size_t mean_size, size_t rows, size_t row_size) {
  check(mean_size == pictures.shape(1), "mean", mean_size,
        "must fit a picture; correct the caller");
  check(rows == pictures.shape(0) && row_size == pictures.shape(1), "out", rows,
        "must have the pictures' shape; correct the caller");
}

void centre_float(const Pictures& pictures, const Array<const uint8_t, 1>& mean,
                  const Array<float, 2>& out) {
  check_sizes(pictures, mean.shape(0), out.shape(0), out.shape(1));
  const GilReleased release;
  simd::kernels().centre_float(pictures.data(), mean.data(), pictures.shape(1), pictures.shape(0),
                               out.data());
}

void centre_bfloat16(const Pictures& pictures, const Array<const uint8_t, 1>& mean,
                     const Array<uint16_t, 2>& out) {
  check_sizes(pictures, mean.shape(0), out.shape(0), out.shape(1));
  const GilReleased release;
  simd::kernels().centre_bfloat16(pictures.data(), mean.data(), pictures.shape(1),
                                  pictures.shape(0), out.data());
}

void add_pictures(const Pictures& pictures, const Array<uint32_t, 1>& total) {
  check_sizes(pictures, total.shape(0), pictures.shape(0), pictures.shape(1));
  const GilReleased release;
  simd::kernels().add_bytes(pictures.data(), pictures.shape(1), pictures.shape(0), total.data());
}

}  // namespace

void bind_pictures(nb::module_& m) {
  m.def("centre_float", &centre_float, nb::arg("pictures").noconvert(), "mean"_a,
        nb::arg("out").noconvert(), "Writes pictures - mean to out, [N, L] float32. Exact.");
  m.def("centre_bfloat16", &centre_bfloat16, nb::arg("pictures").noconvert(), "mean"_a,
        nb::arg("out").noconvert(), "Like centre_float, but out has the bits of bfloat16 numbers.");
  m.def("add_pictures", &add_pictures, nb::arg("pictures").noconvert(),
        nb::arg("total").noconvert(), "Adds the sum of the pictures to total, [L].");
}

}  // namespace tengen
