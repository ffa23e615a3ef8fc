#include "trainer/torch/unseen_works.h"

#include <exception>
#include <new>
#include <unordered_map>
#include <utility>

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif

#include "trainer/torch/work.h"

namespace gradcube::pytorch {
namespace {

// The code that the interpreter is in, and the instruction.
using Place = std::pair<const void*, int>;

// Of each work that Python has. Never destroyed, as works may outlive what is static.
std::unordered_map<const PyObject*, Place>& made_at() {
  static auto* const places = new std::unordered_map<const PyObject*, Place>();
  return *places;
}

// Runs no code of Python's, as attributes may.
Place place() {
  PyFrameObject* const frame = PyEval_GetFrame();
  if (frame == nullptr) return {};
  PyCodeObject* const code = PyFrame_GetCode(frame);
  Py_DECREF(code);  // the frame has it
#if PY_VERSION_HEX >= 0x030B0000
  return {code, PyFrame_GetLasti(frame)};
#else
  return {code, frame->f_lasti};
#endif
}

// By a function of Python's that the instruction has called, or by Python's own handler: not by
// the call of C itself.
bool was_raised_within(PyObject* type, PyObject* trace) {
  const bool has_inner_frame =
      trace != nullptr && reinterpret_cast<PyTracebackObject*>(trace)->tb_next != nullptr;
  return has_inner_frame || PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt) != 0;
}

PyObject* allocate(PyTypeObject* type, Py_ssize_t items) {
  PyObject* const work = PyType_GenericAlloc(type, items);
  if (work == nullptr) return nullptr;
  try {
    made_at()[work] = place();
  } catch (const std::bad_alloc&) {
    // Its caller's, whatever comes.
  }
  return work;
}

PyObject* refuse_to_make(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "only the calls of a process group make works");
  return nullptr;
}

void finalize(PyObject* work) {
  const auto made = made_at().extract(work);
  if (made.empty() || PyErr_Occurred() == nullptr) return;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  try {
    const bool is_of_handler = was_raised_within(type, trace) && made.mapped() == place();
    if (is_of_handler) py::handle(work).cast<GradcubeWork&>().lose();
  } catch (py::error_already_set& raised) {  // by the handler of one more signal
    Py_CLEAR(type);
    Py_CLEAR(value);
    Py_CLEAR(trace);
    raised.restore();
    return;
  } catch (const std::exception&) {
    // In a forked child, which has none of its parent's works.
  }
  PyErr_Restore(type, value, trace);
}

void destroy(PyObject* work) {
  const bool is_held_again = PyObject_CallFinalizerFromDealloc(work) != 0;
  if (!is_held_again) Py_TYPE(work)->tp_base->tp_dealloc(work);
}

}  // namespace

void lose_unseen_works(PyHeapTypeObject* type) {
  type->ht_type.tp_alloc = allocate;
  type->ht_type.tp_new = refuse_to_make;
  type->ht_type.tp_finalize = finalize;
  type->ht_type.tp_dealloc = destroy;
}

}  // namespace gradcube::pytorch
