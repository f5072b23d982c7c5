#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_forest", 0, -1, 0};
PyMODINIT_FUNC PyInit__forest(void) { return PyModule_Create(&module); }
