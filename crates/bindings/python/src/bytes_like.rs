//! The bytes of an object with the buffer protocol, such as `bytes`, `bytearray` or `memoryview`, in place.
//!
//! The functions of the buffer protocol are in every CPython from 3.9 on, with one layout of `Py_buffer`, but
//! the stable ABI, and therefore PyO3, counts them only from 3.11 on. They are declared here.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::slice;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTypeInfo, ffi};

/// An object's bytes. While this value is there, the object keeps their place and their number.
pub(crate) enum BytesLike<'py> {
    Bytes(Bound<'py, PyBytes>),
    Buffer(HeldBuffer<'py>),
}

impl<'py> BytesLike<'py> {
    /// The bytes of `object`.
    ///
    /// # Errors
    /// A `TypeError` if it has none, and a `BufferError` if they do not lie together.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(Self::Bytes(bytes.clone())),
            Err(_) => HeldBuffer::of(object).map(Self::Buffer),
        }
    }

    /// Hands the bytes to `read`, which cannot let other Python code run that would change them.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Bytes(bytes) => read(bytes.as_bytes()),
            Self::Buffer(buffer) => buffer.with(read),
        }
    }
}

/// A buffer that its object holds for us.
pub(crate) struct HeldBuffer<'py> {
    _attached: Python<'py>,
    /// It stays in its place, as an object may point into it.
    view: Box<PyBufferView>,
}

/// `Py_buffer`, as all CPythons have it.
#[repr(C)]
struct PyBufferView {
    start: *mut c_void,
    object: *mut ffi::PyObject,
    length: isize,
    item_bytes: isize,
    read_only: c_int,
    dimensions: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    offsets: *mut isize,
    internal: *mut c_void,
}

/// The flags of a request for plain bytes that lie together.
const PLAIN: c_int = 0;

#[allow(unsafe_code, reason = "functions that PyO3 does not declare for Python 3.9")]
unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut PyBufferView, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut PyBufferView);
}

impl<'py> HeldBuffer<'py> {
    #[allow(unsafe_code, reason = "a call of the buffer protocol")]
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let mut view = Box::new(PyBufferView {
            start: ptr::null_mut(),
            object: ptr::null_mut(),
            length: 0,
            item_bytes: 0,
            read_only: 0,
            dimensions: 0,
            format: ptr::null_mut(),
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            offsets: ptr::null_mut(),
            internal: ptr::null_mut(),
        });
        // SAFETY: the object is alive and the interpreter attached, as `object` proves; `view` is writable.
        let answer = unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, PLAIN) };
        if answer == 0 { Ok(Self { _attached: py, view }) } else { Err(refused(py, object)) }
    }

    #[allow(unsafe_code, reason = "the bytes of a buffer")]
    fn with<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        if self.view.length <= 0 || self.view.start.is_null() {
            return read(&[]);
        }
        // SAFETY: the object holds so many bytes there until the view is released. This thread is attached to
        // the interpreter, and `read` has no way to detach, so that no Python code writes to them meanwhile.
        read(unsafe { slice::from_raw_parts(self.view.start.cast(), self.view.length as usize) })
    }
}

impl Drop for HeldBuffer<'_> {
    #[allow(unsafe_code, reason = "a call of the buffer protocol")]
    fn drop(&mut self) {
        // SAFETY: the view was filled by PyObject_GetBuffer, and the interpreter is attached.
        unsafe { PyBuffer_Release(&raw mut *self.view) };
    }
}

/// The error of an object without plain bytes: in our words if it has no bytes at all.
fn refused(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyErr {
    let why = PyErr::fetch(py);
    if !why.get_type(py).is(PyTypeError::type_object(py)) {
        return why;
    }
    let name = object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let hint = if name == "str" { ": encode the text, such as with text.encode()" } else { "" };
    PyTypeError::new_err(format!("bytes, bytearray or memoryview expected, not {name}{hint}"))
}
