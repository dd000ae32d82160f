"""NonMaxSuppression against onnxruntime, alone and in the post-processing of a detector."""

import unittest

import numpy as np

import models
from models import Compiled


def boxes(batch, count, centre=False):
    """Boxes that often overlap; corners in any order."""
    middle, size = models.RNG.random((batch, count, 2)) * 4, models.RNG.random((batch, count, 2)) + 0.2
    parts = (middle, size) if centre else (middle - size / 2, middle + size / 2)
    result = np.concatenate(parts, -1).astype(np.float32)
    if not centre:
        flipped = models.RNG.random((batch, count)) < 0.3
        result[flipped] = result[flipped][:, [2, 3, 0, 1]]
    return result


def scores(*shape, ties=False):
    values = models.RNG.random(shape).astype(np.float32)
    return np.round(values, 1).astype(np.float32) if ties else values


class Boxes(unittest.TestCase):
    ALL = """m (float[b, n, 4] boxes, float[b, c, n] scores, int64[1] limit, float[1] iou, float[1] least) => (int64[k, 3] y)
        { y = NonMaxSuppression<center_point_box=CENTRE>(boxes, scores, limit, iou, least) }"""

    def test_all_settings(self):
        for centre in (0, 1):
            model = Compiled(self.ALL.replace("CENTRE", str(centre)))
            for batch, classes, count in ((1, 1, 1), (2, 3, 20), (3, 1, 100)):
                for limit, iou, least in ((0, 0.5, 0), (1, 0.5, 0.2), (5, 0, 0), (1000, 1, 0.5), (1000, 0.3, -1), (10, 0.7, 2)):
                    model.check(self, boxes=boxes(batch, count, bool(centre)), scores=scores(batch, classes, count, ties=limit == 1000),
                                limit=np.array([limit], np.int64), iou=np.array([iou], np.float32),
                                least=np.array([least], np.float32))

    def test_many_classes_in_one_row(self):
        # As exporters write it: classes are moved apart, so most boxes meet none. Some have no area, some are everywhere.
        model = Compiled(self.ALL.replace("CENTRE", "0"))
        for count in (63, 64, 700, 3000):
            row = boxes(1, count)
            row += models.RNG.integers(0, 40, (1, count, 1)).astype(np.float32) * 8
            row[:, ::7, 2] = row[:, ::7, 0]
            row[:, 5::101] = (-1e20, -1e20, 1e20, 1e20)
            for limit in (count, 100):
                model.check(self, boxes=row, scores=scores(1, 1, count), limit=np.array([limit], np.int64),
                            iou=np.array([0.4], np.float32), least=np.array([0.1], np.float32))

    def test_defaults(self):
        model = Compiled("""m (float[1, n, 4] boxes, float[1, 2, n] scores) => (int64[k, 3] none, int64[l, 3] some)
            { none = NonMaxSuppression(boxes, scores) limit = Constant<value = int64[1] {3}>()
              some = NonMaxSuppression(boxes, scores, limit) }""")
        model.check(self, boxes=boxes(1, 30), scores=scores(1, 2, 30))

    def test_boxes_without_area(self):
        model = Compiled(self.ALL.replace("CENTRE", "0"))
        flat = np.zeros((1, 6, 4), np.float32)
        flat[0, 3:] = [0, 0, 1, 1]
        model.check(self, boxes=flat, scores=scores(1, 1, 6), limit=np.array([10], np.int64), iou=np.array([0], np.float32),
                    least=np.array([0], np.float32))

    def test_a_detector(self):
        # What exporters write behind a detector's head: best class, threshold, suppression, rows of the boxes that are left.
        model = Compiled("""m (float[n, 4] boxes, float[n, 5] logits) => (float[d, 4] kept, float[d] best, int64[d] label, int64[one] count)
            { p = Softmax<axis=1>(logits) best_all = ReduceMax<axes=[1], keepdims=0>(p) label_all = ArgMax<axis=1, keepdims=0>(p)
              least = Constant<value = float {0.3}>() good = Greater(best_all, least) i = NonZero(good) flat = Constant<value = int64[1] {-1}>()
              j = Reshape(i, flat) b = Gather(boxes, j) s = Gather(best_all, j) l = Gather(label_all, j)
              shift = Cast<to=1>(l) far = Constant<value = float {10.0}>() offset = Mul(shift, far) a1 = Constant<value = int64[1] {1}>()
              column = Unsqueeze(offset, a1) apart = Add(b, column) a0 = Constant<value = int64[1] {0}>() b3 = Unsqueeze(apart, a0)
              a01 = Constant<value = int64[2] {0, 1}>() s3 = Unsqueeze(s, a01) limit = Constant<value = int64[1] {100}>()
              iou = Constant<value = float[1] {0.4}>() found = NonMaxSuppression(b3, s3, limit, iou)
              two = Constant<value = int64 {2}>() rows = Gather<axis=1>(found, two) many = Shape(rows)
              most = Constant<value = int64[1] {7}>() k = Min(many, most) chosen = Gather(s, rows) best, order = TopK(chosen, k)
              last = Gather(rows, order) kept = Gather(b, last) label = Gather(l, last) count = Identity(k) }""")
        for count in (1, 5, 60, 400):
            model.check(self, boxes=boxes(1, count)[0], logits=models.RNG.standard_normal((count, 5)).astype(np.float32) * 2)


if __name__ == "__main__":
    unittest.main()
