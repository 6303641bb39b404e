//! Records as Arrow data. Columns are built once from the engine's records and exported without copying.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};
use pathweave_records::{Column, Get, RunResult};
use pyo3::exceptions::{PyImportError, PyModuleNotFoundError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCapsule};

/// Table of a run's records.
///
/// It supports the Arrow C stream interface, so libraries can import it directly: `polars.DataFrame(table)`,
/// `pyarrow.table(table)`. The package's wrapper has `to_polars`, `to_pandas` and `to_arrow`.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct Table {
    batch: RecordBatch,
    columns: Vec<(&'static str, &'static str, &'static str)>,
}

impl Table {
    pub(crate) fn from_records<R>(
        run: &RunResult,
        columns: &[Column<R>],
        rows: &[R],
    ) -> Result<Self, ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for column in columns {
            let array = array(run, column, rows)?;
            let described = [("unit", column.unit()), ("meaning", column.meaning)];
            let described = described.map(|(key, text)| (key.to_owned(), text.to_owned()));
            let field = Field::new(column.name, array.data_type().clone(), column.nullable);
            fields.push(field.with_metadata(HashMap::from(described)));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
        let columns = columns.iter().map(|column| (column.name, column.unit(), column.meaning)).collect();
        Ok(Table { batch, columns })
    }
}

fn array<R>(run: &RunResult, column: &Column<R>, rows: &[R]) -> Result<ArrayRef, ArrowError> {
    Ok(match column.get {
        Get::U32(get) => Arc::new(rows.iter().map(|row| get(run, row)).collect::<UInt32Array>()),
        Get::U64(get) => Arc::new(rows.iter().map(|row| get(run, row)).collect::<UInt64Array>()),
        Get::F64(get) => Arc::new(rows.iter().map(|row| get(run, row)).collect::<Float64Array>()),
        Get::Label(labels, get) => {
            let labels = labels(run);
            let mut texts = StringDictionaryBuilder::<UInt32Type>::new();
            for row in rows {
                match get(row).and_then(|index| labels.get(index)) {
                    Some(label) => {
                        texts.append(label)?;
                    }
                    None => texts.append_null(),
                }
            }
            Arc::new(texts.finish())
        }
    })
}

#[pymethods]
impl Table {
    /// Returns the number of rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns. They end in the unit.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, ..)| *name).collect()
    }

    /// Name, unit ("" if there is none) and meaning of each column.
    #[getter]
    fn description(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        self.columns.clone()
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows: {}>", self.batch.num_rows(), self.columns().join(", "))
    }

    /// Converts the table to a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pyarrow")?.call_method1("table", (slf,))
    }

    /// Converts the table to a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars")?.call_method1("DataFrame", (slf,))
    }

    /// Converts the table to a `pandas.DataFrame`, which needs `pyarrow` as well. Numeric columns without missing
    /// values are not copied.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pandas")?;
        // Without this option, columns of one type are copied into one block.
        let as_they_are = [("split_blocks", true)].into_py_dict(slf.py())?;
        Table::to_arrow(slf)?.call_method("to_pandas", (), Some(&as_they_are))
    }

    /// Exports the table by the Arrow PyCapsule protocol as a stream of one batch. The schema is always that of the
    /// records.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol permits ignoring the requested schema. The caller may cast afterwards.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Imports an optional library.
fn library<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|error| {
        let missing = error.is_instance_of::<PyModuleNotFoundError>(py);
        if missing { PyImportError::new_err(format!("this needs {name}: pip install {name}")) } else { error }
    })
}

/// Converts an Arrow error to an exception. An error in data that the engine itself built is a bug.
pub(crate) fn bug(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
