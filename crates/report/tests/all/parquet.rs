//! Parquet files read back: rows, values, names and units match the column tables.

use std::fs::File;
use std::path::Path;

use crate::support::{Shape, run};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use pathweave_records::{
    ACTIVITIES, COLLECTIVES, CRITICAL, EVENTS, FLOWS, JOBS, LAYERS, LINKS, RunResult, SERIES, Summary, WAITS,
    collectives, layers,
};
use pathweave_report::{ResultFolder, RunTable};

fn rows(folder: &Path, name: &str) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(folder.join(name)).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn get<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no column {name}")).1
}

fn double(row: &Row, name: &str) -> Option<f64> {
    match get(row, name) {
        Field::Double(v) => Some(*v),
        Field::Null => None,
        other => panic!("{name} is {other:?}"),
    }
}

fn written(run: &RunResult) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(&dir.path().join("run")).unwrap();
    folder.write_run(run, &Summary::from_run(run)).unwrap();
    let path = folder.commit().unwrap();
    (dir, path)
}

#[test]
fn flows_come_back_as_they_were() {
    let mut run = run("small", Shape::SMALL);
    run.flows[3].job = Some(0);
    run.flows[4].size_bytes = (1 << 63) + 5; // sets the sign bit of Parquet's integer
    run.flows[5].src_host = u32::MAX;
    let (_dir, folder) = written(&run);
    let rows = rows(&folder, "flows.parquet");
    assert_eq!(rows.len(), run.flows.len());
    for (row, flow) in rows.iter().zip(&run.flows) {
        assert_eq!(*get(row, "flow"), Field::UInt(flow.flow));
        assert_eq!(*get(row, "src_host"), Field::UInt(flow.src_host));
        assert_eq!(*get(row, "size_bytes"), Field::ULong(flow.size_bytes));
        assert_eq!(*get(row, "job"), flow.job.map_or(Field::Null, Field::UInt));
        assert_eq!(*get(row, "group"), Field::Str(run.info.groups[usize::from(flow.group)].clone()));
        assert_eq!(*get(row, "status"), Field::Str(flow.status.name().to_owned()));
        let ps = |ns: f64| (ns * 1_000.0).round() as u64;
        assert_eq!(double(row, "start_ns").map(ps), Some(flow.start_ps));
        assert_eq!(double(row, "fct_ns").map(ps), flow.fct_ps());
        assert_eq!(double(row, "slowdown"), flow.slowdown());
        assert_eq!(double(row, "goodput_bps"), flow.goodput_bps());
    }
}

#[test]
fn every_file_has_the_columns_of_its_table_and_a_row_a_record() {
    fn check<R>(folder: &Path, name: &str, columns: &[pathweave_records::Column<R>], records: usize) {
        let reader = SerializedFileReader::new(File::open(folder.join(name)).unwrap()).unwrap();
        let meta = reader.metadata().file_metadata();
        assert_eq!(meta.num_rows(), records as i64, "{name}");
        let found: Vec<_> = meta.schema_descr().columns().iter().map(|c| c.name().to_owned()).collect();
        assert_eq!(found, columns.iter().map(|c| c.name.to_owned()).collect::<Vec<_>>(), "{name}");
        let pairs = meta.key_value_metadata().unwrap();
        let digest = pairs.iter().find(|p| p.key == "pathweave.digest").unwrap();
        assert_eq!(digest.value.as_deref(), Some("0123456789abcdef"));
    }
    let run = run("small", Shape::SMALL);
    let (_dir, folder) = written(&run);
    check(&folder, "flows.parquet", FLOWS, run.flows.len());
    check(&folder, "series.parquet", SERIES, run.series.len());
    check(&folder, "events.parquet", EVENTS, run.events.len());
    check(&folder, "links.parquet", LINKS, run.links.len());
    check(&folder, "jobs.parquet", JOBS, run.jobs.len());
    check(&folder, "activities.parquet", ACTIVITIES, run.activities.len());
    check(&folder, "collectives.parquet", COLLECTIVES, collectives(&run).len());
    check(&folder, "layers.parquet", LAYERS, layers(&run).len());
    check(&folder, "critical.parquet", CRITICAL, run.critical.len());
    check(&folder, "waits.parquet", WAITS, run.waits.len());
}

#[test]
fn events_and_links_come_back_as_they_were() {
    let run = run("small", Shape::SMALL);
    let (_dir, folder) = written(&run);
    for (row, event) in rows(&folder, "events.parquet").iter().zip(&run.events) {
        assert_eq!(*get(row, "kind"), Field::Str(event.kind.name().to_owned()));
        let reason = event.reason.map_or(Field::Null, |r| Field::Str(r.name().to_owned()));
        assert_eq!(*get(row, "reason"), reason);
        assert_eq!(*get(row, "link"), event.link.map_or(Field::Null, Field::UInt));
    }
    for (row, link) in rows(&folder, "links.parquet").iter().zip(&run.links) {
        assert_eq!(*get(row, "name"), Field::Str(link.name.clone()));
        assert_eq!(double(row, "utilisation_ratio"), Some(link.utilisation(run.info.simulated_ps)));
    }
}

#[test]
fn a_run_without_records_has_files_without_rows() {
    let (_dir, folder) = written(&RunResult::default());
    for table in RunTable::ALL {
        assert!(rows(&folder, table.file()).is_empty(), "{table:?}");
    }
}
