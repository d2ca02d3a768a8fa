//! The guarantees of the builder: the core's results, reproducible bits, and errors that name parameters.

use std::ops::ControlFlow;

use partwise::options::{Every, ImageShape, ImageSide, Init, Method, Missing, Precision, Side, SketchKind};
use partwise::{CancelToken, ErrorKind, Matrix, Model, Nmf, Progress, Reader, Result, Sketch};

/// A matrix of rank 3 with some noise, and zeros.
fn sample(rows: usize, cols: usize) -> Vec<f64> {
    let entry = |row: usize, col: usize| {
        let parts = (0..3).map(|j| ((row * (j + 2)) % 7) as f64 * ((col * (j + 3)) % 5) as f64);
        let noise = ((row * 31 + col * 17) % 11) as f64 / 10.0;
        if (row + col).is_multiple_of(4) { 0.0 } else { parts.sum::<f64>() + noise }
    };
    (0..rows).flat_map(|row| (0..cols).map(move |col| entry(row, col))).collect()
}

fn dense() -> Matrix<'static> {
    Matrix::from_vec(40, 30, sample(40, 30)).unwrap()
}

fn sparse() -> Matrix<'static> {
    let entries = sample(40, 30);
    let triplets = entries.iter().enumerate().filter(|(_, entry)| **entry > 0.0);
    Matrix::from_triplets(40, 30, triplets.map(|(place, &entry)| (place / 30, place % 30, entry))).unwrap()
}

fn error_of(result: Result<Model>) -> (Option<String>, String) {
    let error = result.unwrap_err();
    (error.parameter().map(String::from), error.to_string())
}

#[test]
fn results_equal_the_core_and_do_not_depend_on_threads_or_layout() {
    use partwise_core::matrix::{Dense, Matrix as CoreMatrix, Order, Values};
    use partwise_core::run::{Machine, Progress, Settings, factorize};
    let values = Values::Real(sample(40, 30).into());
    let matrix = CoreMatrix::Dense(Dense::new(40, 30, Order::RowMajor, values));
    let settings = Settings { iterations: 30, seed: 5, ..Settings::new(3) };
    let expected =
        factorize::<f64>(matrix, Machine::new(1, 1), &settings, None, &mut |_: &Progress| false).unwrap();
    let nmf = Nmf::new(3).iterations(30).seed(5).precision(Precision::F64);
    for threads in [1, 2] {
        let model = nmf.clone().threads(threads).fit(&dense()).unwrap();
        assert_eq!(model.relative_error(), expected.report.relative_error);
        assert_eq!(model.trace().len(), expected.report.trace.len());
    }
    let turned = dense().into_transpose().into_transpose();
    assert_eq!(nmf.fit(&turned).unwrap().relative_error(), expected.report.relative_error);
    let of_sparse = nmf.fit(&sparse()).unwrap().relative_error();
    assert!((of_sparse - expected.report.relative_error).abs() < 1e-9, "{of_sparse}");
    let by_column = nmf.fit(&sparse().into_transpose()).unwrap();
    assert_eq!((by_column.u().rows(), by_column.v().rows()), (30, 40));
}

#[test]
fn any_element_type_is_computed_in_either_precision() {
    let bytes: Vec<u8> = sample(40, 30).iter().map(|entry| *entry as u8).collect();
    let wide: Vec<f64> = bytes.iter().map(|&byte| byte.into()).collect();
    let narrow: Vec<f32> = bytes.iter().map(|&byte| byte.into()).collect();
    let matrices = [
        Matrix::from_slice(40, 30, &bytes).unwrap(),
        Matrix::from_slice(40, 30, &wide).unwrap(),
        Matrix::from_slice(40, 30, &narrow).unwrap(),
    ];
    for precision in [Precision::F32, Precision::F64] {
        let nmf = Nmf::new(3).iterations(20).precision(precision);
        let errors = matrices.each_ref().map(|matrix| nmf.fit(matrix).unwrap().relative_error());
        assert!(errors.iter().all(|error| (error - errors[0]).abs() < 1e-6), "{errors:?}");
    }
}

#[test]
fn every_method_and_start_runs() {
    for &method in Method::ALL {
        let model = Nmf::new(3).method(method).fit(&dense()).unwrap();
        assert!(model.relative_error() < 0.6, "{method}: {}", model.relative_error());
    }
    for init in Init::ALL {
        assert!(Nmf::new(3).init(init).fit(&dense()).unwrap().relative_error() < 0.6);
    }
    let plain = Nmf::new(3).fit(&dense()).unwrap().relative_error();
    let workers = Nmf::new(3).workers(3).fit(&dense()).unwrap().relative_error();
    assert!((plain - workers).abs() < 1e-4);
    let network = "1Gbit/s,100us".parse().unwrap();
    let modelled = Nmf::new(3).workers(2).network(network).iterations(5).fit(&dense()).unwrap();
    assert!(modelled.plan().contains("built-in constants"), "{}", modelled.plan());
    let penalized = Nmf::new(3).l1_u(0.5).l2_v(0.1).fit(&dense()).unwrap();
    assert!(penalized.relative_error() > plain);
    let best = Nmf::new(3).restarts(3).fit(&dense()).unwrap();
    let errors = best.errors_of_restarts();
    assert_eq!(
        (errors.len(), best.relative_error()),
        (3, errors.iter().copied().fold(f64::INFINITY, f64::min))
    );
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    let refused = |nmf: Nmf| error_of(nmf.fit(&dense())).0.unwrap_or_default();
    assert_eq!(refused(Nmf::new(0)), "components");
    assert_eq!(refused(Nmf::new(3).iterations(0)), "iterations");
    assert_eq!(refused(Nmf::new(3).tolerance(f64::NAN)), "tolerance");
    assert_eq!(refused(Nmf::new(3).threads(0)), "threads");
    assert_eq!(refused(Nmf::new(3).workers(0)), "workers");
    assert_eq!(refused(Nmf::new(3).sketch(SketchKind::Srht)), "sketch");
    assert_eq!(refused(Nmf::new(3).sketch(Sketch::new("mine", |_, _, _| {}))), "sketch");
    assert_eq!(refused(Nmf::new(3).alpha(0.2)), "alpha");
    assert_eq!(refused(Nmf::new(3).method(Method::Dsanls).sketch_cols(31)), "sketch_cols");
    assert_eq!(refused(Nmf::new(31).init(Init::Nndsvd)), "init");
    assert_eq!(refused(Nmf::new(3).resume(true)), "resume");
    assert_eq!(refused(Nmf::new(3).checkpoint("x", Every::Iterations(0))), "checkpoint");
    let ones = Matrix::from_vec(40, 2, vec![1.0; 80]).unwrap();
    let twos = Matrix::from_vec(29, 2, vec![1.0; 58]).unwrap();
    assert_eq!(refused(Nmf::new(2).start(&ones, &twos)), "start");
    let outside = Nmf::new(3).method(Method::Dsanls).sketch(Sketch::new("outside", |size, _, row| {
        row.push((size.cols, 1.0));
    }));
    assert!(error_of(outside.fit(&dense())).1.contains("outside drew the entry"));
}

#[test]
fn invalid_entries_are_refused_with_their_position() {
    for (wrong, precision, words) in [
        (-1.0, Precision::F32, "is -1, but a finite number of at least 0 is needed"),
        (f64::NAN, Precision::F64, "is NaN"),
        (f64::INFINITY, Precision::F32, "is inf, but"),
        (1e300, Precision::F32, "which is beyond f32; compute in f64"),
    ] {
        let mut entries = sample(40, 30);
        entries[2 * 30 + 7] = wrong;
        let matrix = Matrix::from_vec(40, 30, entries).unwrap();
        let (parameter, message) = error_of(Nmf::new(3).precision(precision).fit(&matrix));
        assert_eq!(parameter.as_deref(), Some("matrix"));
        assert!(message.contains("row 2, column 7") && message.contains(words), "{message}");
    }
    let zeros = Matrix::from_vec(4, 3, vec![0.0; 12]).unwrap();
    assert!(error_of(Nmf::new(1).fit(&zeros)).1.contains("every entry is 0"));
}

#[test]
fn a_resumed_run_has_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.checkpoint");
    let nmf = Nmf::new(3).iterations(40).tolerance(0.0).restarts(2);
    let whole = nmf.fit(&dense()).unwrap();
    let saving = nmf.checkpoint(&file, Every::Iterations(5));
    let mut until_half = |progress: &Progress| match (progress.restart, progress.iteration) {
        (1, 20) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    saving.fit_with(&dense(), &mut until_half).unwrap();
    let resumed = saving.clone().resume(true).fit(&dense()).unwrap();
    assert_eq!((resumed.u(), resumed.v()), (whole.u(), whole.v()));
    let other = Matrix::from_vec(40, 30, sample(41, 30)[30..].to_vec()).unwrap();
    assert_eq!(error_of(saving.clone().resume(true).fit(&other)).0.as_deref(), Some("resume"));
    let others = saving.resume(true).seed(9).fit(&dense());
    assert_eq!(error_of(others).0.as_deref(), Some("resume"));
}

#[test]
fn a_token_cancels_a_run_from_another_thread() {
    let entries: Vec<f32> = (0..400 * 400_u64).map(|i| ((i * i) % 101) as f32).collect();
    let matrix = Matrix::from_vec(400, 400, entries).unwrap();
    let token = CancelToken::new();
    let nmf = Nmf::new(20).iterations(1_000_000).tolerance(0.0).cancel_token(&token);
    let cancelling = token.clone();
    let mut at_ten = |progress: &Progress| {
        if progress.iteration == 10 {
            cancelling.cancel();
        }
        ControlFlow::Continue(())
    };
    let error = nmf.fit_with(&matrix, &mut at_ten).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn a_result_folder_is_read_back_and_transforms_alike() {
    let folder = tempfile::tempdir().unwrap();
    for precision in [Precision::F32, Precision::F64] {
        let names = (0..30).map(|col| format!("column {col}")).collect();
        let matrix = dense().with_col_labels(names).unwrap();
        let model = Nmf::new(3).l1_u(0.1).precision(precision).exact_rows(true).fit(&matrix).unwrap();
        model.write(folder.path()).unwrap();
        let read = Model::read(folder.path()).unwrap();
        assert_eq!((read.u(), read.v()), (model.u(), model.v()));
        assert_eq!(read.v().row_labels().unwrap()[7], "column 7");
        assert_eq!(read.relative_error(), model.relative_error());
        assert_eq!(read.transform(&matrix).unwrap(), model.transform(&matrix).unwrap());
        let columns = read.transform_columns(&matrix).unwrap();
        assert_eq!((columns.rows(), columns.cols()), (30, 3));
    }
    assert_eq!(Model::read(folder.path().join("none")).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_file_is_factorized_like_its_matrix() {
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let reader = Reader::new("data/digits.npy");
    let nmf = Nmf::new(5).iterations(10);
    let (from_file, from_memory) = (nmf.fit(&reader).unwrap(), nmf.fit(&reader.read().unwrap()).unwrap());
    assert_eq!((from_file.u(), from_file.v()), (from_memory.u(), from_memory.v()));
    let missing = nmf.fit(&Reader::new("no/such/file.npy")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Io);
}

/// Entries that are hidden are filled with values that would spoil the result if they were read.
#[test]
fn unknown_entries_have_no_influence() {
    let hidden = |row: usize, col: usize| (row * 7 + col * 3).is_multiple_of(5);
    let filled = |with: f64| {
        let of = |place: usize, entry: f64| if hidden(place / 30, place % 30) { with } else { entry + 1.0 };
        sample(40, 30).into_iter().enumerate().map(|(place, entry)| of(place, entry)).collect::<Vec<f64>>()
    };
    let matrix = |with| Matrix::from_vec(40, 30, filled(with)).unwrap();
    let mask: Vec<u8> = (0..1200).map(|place| hidden(place / 30, place % 30).into()).collect();
    let mask = Matrix::from_vec(40, 30, mask).unwrap();
    let (nan, zero, large) = (matrix(f64::NAN), matrix(0.0), matrix(1e6));
    let nmf = Nmf::new(3).iterations(30).precision(Precision::F64);
    let expected = nmf.fit(&nan.observed().missing(Missing::Nan)).unwrap();
    assert!(expected.relative_error() < 0.3, "{}", expected.relative_error());
    for observed in [
        zero.observed().missing(Missing::Zero),
        large.observed().mask(&mask),
        large.observed().missing(Missing::Zero).mask(&mask),
    ] {
        let model = nmf.fit(&observed).unwrap();
        assert_eq!((model.u(), model.v()), (expected.u(), expected.v()));
        assert_eq!(expected.transform(&observed).unwrap(), model.transform(&observed).unwrap());
    }
    let weights: Vec<f64> = mask.to_vec::<f64>().iter().map(|hidden| 1.0 - hidden).collect();
    let weights = Matrix::from_vec(40, 30, weights).unwrap();
    let weighted = nmf.fit(&large.observed().weights(&weights)).unwrap();
    assert!((weighted.relative_error() - expected.relative_error()).abs() < 1e-9);
    // New columns are solved for by the same known entries.
    let columns = expected.transform_columns(&large.observed().mask(&mask)).unwrap();
    assert_eq!(columns, expected.transform_columns(&nan.observed().missing(Missing::Nan)).unwrap());
    assert_eq!((columns.rows(), columns.cols()), (30, 3));

    // What was missing from M is missing from new rows, unless something is said of them; also of a model that is read.
    let folder = tempfile::tempdir().unwrap();
    expected.write(folder.path()).unwrap();
    for model in [&expected, &Model::read(folder.path()).unwrap()] {
        let of = |matrix: &Matrix<'_>| model.transform(matrix).unwrap();
        assert_eq!(of(&nan), model.transform(&nan.observed().missing(Missing::Nan)).unwrap());
        assert_ne!(of(&zero), of(&nan));
        assert!(model.transform(&nan.observed()).is_err());
    }

    let refused = |model: Result<Model>| error_of(model).0.unwrap_or_default();
    assert_eq!(refused(nmf.fit(&nan)), "matrix");
    assert_eq!(refused(nmf.fit(&large.observed().missing(Missing::Unstored))), "missing");
    assert_eq!(
        refused(nmf.fit(&large.observed().mask(&Matrix::from_vec(2, 1, vec![0.0; 2]).unwrap()))),
        "missing"
    );
    let negative = Matrix::from_vec(1, 30, vec![-1.0; 30]).unwrap();
    assert_eq!(refused(nmf.fit(&large.observed().weights(&negative))), "weights");
    let sketched = nmf.clone().method(Method::Dsanls);
    assert_eq!(refused(sketched.fit(&nan.observed().missing(Missing::Nan))), "method");
}

#[test]
fn what_is_unknown_in_a_file_is_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let cell = |row: usize, col: usize| match (row + 2 * col) % 6 {
        0 => "NA".to_string(),
        rest => format!("{}", rest * (row + 1)),
    };
    let line = |row: usize| (0..5).map(|col| cell(row, col)).collect::<Vec<_>>().join(",");
    let table: String = (0..8).map(|row| line(row) + "\n").collect();
    std::fs::write(at("table.csv"), table).unwrap();
    let weights: String = (0..8).map(|row| format!("{}\n", row % 3)).collect();
    std::fs::write(at("weights.csv"), weights).unwrap();
    let mask: String = (0..8).map(|row| if row == 2 { "1,0,0,0,0\n" } else { "0,0,0,0,0\n" }).collect();
    std::fs::write(at("mask.csv"), mask).unwrap();

    let nmf = Nmf::new(2).iterations(20).seed(3);
    let file = Reader::new(at("table.csv")).missing(Missing::Nan);
    let read = file.read().unwrap();
    assert!(read.get(0, 0).is_nan());
    let from_file = nmf.fit(&file).unwrap();
    let from_memory = nmf.fit(&read.observed().missing(Missing::Nan)).unwrap();
    assert_eq!((from_file.u(), from_file.v()), (from_memory.u(), from_memory.v()));
    let again = from_file.transform(&file).unwrap();
    assert_eq!((again.rows(), &again), (8, &from_file.transform(&Reader::new(at("table.csv"))).unwrap()));
    assert_eq!(again, from_file.transform(&read).unwrap());

    let numbers = Reader::new(at("weights.csv")).read().unwrap();
    let by_file = nmf.fit(&file.clone().weights(at("weights.csv"))).unwrap();
    let by_memory = nmf.fit(&read.observed().missing(Missing::Nan).weights(&numbers)).unwrap();
    assert_eq!((by_file.u(), by_file.v()), (by_memory.u(), by_memory.v()));
    assert_ne!(by_file.v(), from_file.v());

    // A mask hides its entries, and no others: what is no number remains wrong.
    let masked = nmf.fit(&file.clone().mask(at("mask.csv")));
    assert_eq!(masked.unwrap_err().kind(), ErrorKind::Data);
    assert_eq!(nmf.fit(&Reader::new(at("table.csv"))).unwrap_err().kind(), ErrorKind::Data);

    // Another mask is another matrix.
    let whole = Reader::new(at("weights.csv"));
    std::fs::write(at("mask.csv"), "1\n".to_string() + &"0\n".repeat(7)).unwrap();
    let saving = Nmf::new(1).iterations(6).tolerance(0.0).checkpoint(at("run"), Every::Iterations(2));
    saving.fit(&whole.clone().mask(at("mask.csv"))).unwrap();
    let again = saving.clone().resume(true);
    again.fit(&whole.clone().mask(at("mask.csv"))).unwrap();
    assert_eq!(error_of(again.fit(&whole)).0.as_deref(), Some("resume"));
}

#[test]
fn held_out_entries_judge_the_result() {
    let rmse = |components: usize, matrix: &Matrix<'_>| {
        let model = Nmf::new(components).iterations(60).holdout(0.2).seed(1).fit(matrix).unwrap();
        assert!(model.trace().last().unwrap().held_out.is_some());
        model.held_out().unwrap().rmse
    };
    for matrix in [dense(), sparse()] {
        assert!(rmse(3, &matrix) < rmse(1, &matrix));
    }
    assert!(Nmf::new(2).fit(&dense()).unwrap().held_out().is_none());
    // From a file, the same entries are hidden.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let (file, nmf) = (Reader::new("data/digits.npy"), Nmf::new(4).iterations(5).holdout(0.1));
    let (from_file, from_memory) = (nmf.fit(&file).unwrap(), nmf.fit(&file.read().unwrap()).unwrap());
    assert_eq!(from_file.held_out(), from_memory.held_out());
    assert_eq!(from_file.v(), from_memory.v());
    for share in [0.0, 1.0, f64::NAN] {
        let refused = Nmf::new(2).holdout(share).check().unwrap_err();
        assert_eq!(refused.parameter(), Some("holdout"));
    }
    let folder = tempfile::tempdir().unwrap();
    from_file.write(folder.path()).unwrap();
    let read = Model::read(folder.path()).unwrap();
    assert_eq!((read.held_out(), read.loss()), (from_file.held_out(), from_file.loss()));
}

#[test]
fn the_program_is_told_of_samples_and_images() {
    let folder = tempfile::tempdir().unwrap();
    let image = |width, height| ImageShape { width, height, channels: 1, images: ImageSide::Columns };
    let nmf = Nmf::new(2).iterations(3).records(Side::Columns).image_shape(image(8, 5));
    nmf.fit(&dense()).unwrap().write(folder.path()).unwrap();
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    assert_eq!((record["records"].as_str(), record["image"]["width"].as_u64()), (Some("columns"), Some(8)));
    let wrong = nmf.image_shape(image(8, 8)).fit(&dense());
    assert_eq!(error_of(wrong).0.as_deref(), Some("image_shape"));
}
