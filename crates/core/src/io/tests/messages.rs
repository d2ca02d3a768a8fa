//! What a user reads when a file is refused: one sentence with the place, the problem and the cure.

use super::*;

#[test]
fn names_and_content() {
    let folder = Folder::new();
    let npy = npy_file("|u1", "False", "(1, 1)", &[1]);
    let zip = zip_file(&csr_members(), zip::CompressionMethod::Stored);
    for (name, bytes, message) in [
        (
            "m.txt",
            b"1".to_vec(),
            "name: unknown file type; Partwise reads .npy, .npz, .mtx, .csv, .tsv, .bin and .h5ad, each also with .gz, and \
             images in a folder or .zip",
        ),
        ("m.npy", b"".to_vec(), "content: the file is empty; create or download it again"),
        (
            "m.npy",
            zip.clone(),
            "content: this is a zip archive, not a NumPy array; rename it to .npz if NumPy or SciPy wrote it, or to \
             .zip if it contains images",
        ),
        ("m.npy", gzip(&npy), "content: this is gzip data, not a NumPy array; add .gz to its name"),
        (
            "m.npy",
            b"1,2\n3,4\n".to_vec(),
            "content: text instead of a NumPy signature; save the array with numpy.save, or correct the name",
        ),
        (
            "m.csv",
            npy.clone(),
            "content: this is a NumPy array, not a comma-separated table; rename it to .npy",
        ),
        ("m.NPZ", npy.clone(), "content: this is a NumPy array, not an .npz archive; rename it to .npy"),
        ("m.npy.gz", npy.clone(), "content: this is not gzip data; remove .gz from the name"),
        (
            "m.mtx",
            b"1 2\n3 4\n".to_vec(),
            "line 1: the first line is text instead of a %%MatrixMarket banner; correct the file or its name",
        ),
    ] {
        assert_eq!(folder.refusal(name, bytes), message, "{name}");
    }
    let damaged = folder.refusal("m.npy.gz", &gzip(&npy)[..20]);
    assert!(damaged.starts_with("compressed data: truncated or damaged ("), "{damaged}");
    let damaged = folder.refusal("m.npz", &zip[..zip.len() / 2]);
    assert!(damaged.starts_with("archive: truncated or damaged ("), "{damaged}");
    assert!(folder.read::<f32>("M.NPY", &npy).is_ok(), "endings may be in capitals");
    assert!(folder.read::<f32>("M.Npy.GZ", gzip(&npy)).is_ok());
}

#[test]
fn missing_files_and_folders() {
    let folder = Folder::new();
    let missing = read::<f32>(&folder.0.path().join("none.npy"), &OPTIONS).unwrap_err();
    assert!(
        matches!(&missing, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound),
        "{missing}"
    );
    std::fs::create_dir(folder.0.path().join("m.npy")).unwrap();
    let message = read::<f32>(&folder.0.path().join("m.npy"), &OPTIONS).unwrap_err().to_string();
    assert!(
        message.contains("content: no JPEG or PNG images in a folder; give a folder with images"),
        "{message}"
    );
}

#[test]
fn entries() {
    let folder = Folder::new();
    let matrix = |value: f64| npy_file("<f8", "True", "(2, 2)", &f64s(&[1.0, 1.0, value, 1.0]));
    let refusal = |value| folder.refusal("m.npy", matrix(value));
    let place = "row 1, column 2 (counted from 1)";
    assert_eq!(
        refusal(-0.5),
        format!(
            "{place} is -0.5; a nonnegative factorization needs entries of at least 0; shift, clip or remove it"
        )
    );
    assert_eq!(
        refusal(f64::NAN),
        format!("{place} is NaN; if it is a missing value, use missing nan; otherwise replace it")
    );
    assert_eq!(refusal(f64::INFINITY), format!("{place} is inf; replace or remove infinite values"));
    let beyond = "it exceeds the range of f32; use precision f64, or rescale the matrix";
    assert_eq!(refusal(1e300), format!("{place} is 1e300; {beyond}"));
    assert!(refusal(-1e300).starts_with(&format!("{place} is -1e300; a nonnegative")));
    assert!(folder.read::<f64>("m.npy", matrix(1e300)).is_ok());
    for (value, cure) in [(f64::INFINITY, "replace or remove infinite values"), (1e300, beyond)] {
        let factor =
            npy::read_array::<f32>(&folder.write("U.npy", matrix(value)), 1 << 20).unwrap_err().to_string();
        assert!(factor.ends_with(cure), "{factor}");
    }
    assert_eq!(folder.refusal("m.csv", "1,1e300\n1,1\n"), format!("{place} is 1e300; {beyond}"));
    let sum = "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 1\n1 2 3e38\n1 2 3e38\n";
    assert_eq!(folder.refusal("m.mtx", sum), format!("{place} is 6e38; {beyond}"));
    let sparse = "%%MatrixMarket matrix coordinate real general\n9 3 3\n1 1 1\n8 3 -1\n9 1 1\n";
    assert!(folder.refusal("m.mtx", sparse).starts_with("row 8, column 3 (counted from 1) is -1;"));
    assert!(folder.refusal("m.csv", "a,b\n1,NaN\n").starts_with(&format!("{place} is NaN")));

    let zero = "entries: every entry is 0, so there is nothing to factorize; check the file";
    assert_eq!(folder.refusal("m.npy", npy_file("|u1", "False", "(1, 2)", &[0, 0])), zero);
    assert_eq!(folder.refusal("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 0\n"), zero);
    let empty = "shape: the matrix is empty (0 x 2); give one with rows and columns";
    assert_eq!(folder.refusal("m.npy", npy_file("<f8", "False", "(0, 2)", &[])), empty);
    assert_eq!(folder.refusal("m.mtx", "%%MatrixMarket matrix coordinate real general\n0 2 0\n"), empty);
}

#[test]
fn numpy_headers() {
    let folder = Folder::new();
    let refusal = |descr, shape, data: &[u8]| folder.refusal("m.npy", npy_file(descr, "False", shape, data));
    assert_eq!(
        refusal("<f8", "(2, 2)", &[0; 31]),
        "data: fewer bytes than the 2 x 2 of float64 that the header announces; create or download the file again"
    );
    assert_eq!(
        refusal("<f8", "(2, 2)", &[0; 33]),
        "data: more bytes than the 2 x 2 of float64 that the header announces; save the array again"
    );
    assert_eq!(
        refusal("<f8", "(2, 2, 2)", &[0; 64]),
        "header: the array has 3 dimensions (2 x 2 x 2), not 2; reshape it to a matrix of rows and columns"
    );
    assert_eq!(
        refusal("<c16", "(2, 2)", &[0; 64]),
        "header: the array contains complex numbers (type \"<c16\"), but Partwise reads 8- to 64-bit integers, float32 and float64; convert it, for example with .astype('float32')"
    );
}

#[test]
fn matrix_market_lines() {
    let folder = Folder::new();
    let general = "%%MatrixMarket matrix coordinate real general\n% comment\n";
    for (text, message) in [
        ("2 3 1\n3 1 1\n", "line 4: row 3 is outside 1 to 2; correct the line or the sizes"),
        ("2 3 1\n0 1 1\n", "line 4: row 0 is outside 1 to 2; correct the line or the sizes"),
        ("2 3 1\n1 4 1\n", "line 4: column 4 is outside 1 to 3; correct the line or the sizes"),
        ("2 3 1\n-1 4 1\n", "line 4: \"-1\" is not a row number; correct the line"),
        ("2 3 1\n1 1 x\n", "line 4: \"x\" is not a number; correct the line"),
        ("2 3 1\n1 1\n", "line 4: the value is missing; correct the line, or make the field pattern"),
        ("2 3 1\n1 1 1 1\n", "line 4: \"1\" follows the entry; remove it"),
        (
            "2 3 2\n1 1 1.000\n",
            "line 4: only 1 entries, but the sizes announce 2; correct the sizes, or download the file again",
        ),
        (
            "2 3 1\n1 1 1\n\n2 1 1\n",
            "line 6: more entries, but the sizes announce 1; correct the sizes, or download the file again",
        ),
        (
            "2 3\n1 1 1\n",
            "line 3: a coordinate file needs three sizes here (rows, columns, entries); correct the line",
        ),
        ("", "line 2: the file ends before the line of sizes; create or download it again"),
    ] {
        assert_eq!(folder.refusal("m.mtx", format!("{general}{text}")), message);
    }
    for (banner, message) in [
        (
            "coordinate complex general",
            "line 1: complex entries cannot be factorized; export real parts or magnitudes",
        ),
        (
            "coordinate real skew-symmetric",
            "line 1: a skew-symmetric matrix has negative entries; give a nonnegative one",
        ),
        ("array pattern general", "line 1: an array of pattern entries has no values; use coordinate"),
        (
            "array real symmetric",
            "line 2: a symmetric matrix cannot be 2 x 3; correct the sizes or the banner",
        ),
    ] {
        assert_eq!(folder.refusal("m.mtx", format!("%%MatrixMarket matrix {banner}\n2 3\n1\n")), message);
    }
}

#[test]
fn archive_members() {
    let folder = Folder::new();
    let offsets = |values: &[i32]| vector_i32(values);
    for (member, content, message) in [
        (
            0,
            name_member("bsr"),
            "member format.npy: the sparse format \"bsr\" is not supported; convert the matrix with .tocsr()",
        ),
        (
            1,
            offsets(&[4, 3, 2]),
            "member shape.npy, header: 3 entries instead of 2 for a matrix; save the matrix again",
        ),
        (1, offsets(&[-4, 3]), "member shape.npy, data: the size -4 is negative; save the matrix again"),
        (
            2,
            offsets(&[0, 2, 4, 5]),
            "member indptr.npy, header: 4 entries instead of 5 for this shape; save the matrix again",
        ),
        (
            2,
            offsets(&[0, 3, 2, 4, 5]),
            "member indptr.npy, data: entry 2 is 2, where offsets rise from 0 to 5; save the matrix again",
        ),
        (
            2,
            offsets(&[1, 2, 2, 4, 5]),
            "member indptr.npy, data: entry 0 is 1, where offsets rise from 0 to 5; save the matrix again",
        ),
        (
            2,
            offsets(&[0, 2, 2, 4, 6]),
            "member indptr.npy, data: entry 4 is 6, where offsets rise from 0 to 5; save the matrix again",
        ),
        (
            2,
            offsets(&[0, 2, 2, 4, 4]),
            "member indptr.npy, data: the last offset is 4, but data.npy has 5 values; save the matrix again",
        ),
        (
            3,
            offsets(&[2, 0, 0, 3, 1]),
            "member indices.npy, data: entry 3 is 3, outside 0 to below 3; save the matrix again",
        ),
        (
            3,
            offsets(&[2, 0, 0, -1, 1]),
            "member indices.npy, data: entry 3 is -1, outside 0 to below 3; save the matrix again",
        ),
        (
            3,
            offsets(&[2, 0]),
            "member indices.npy, header: 2 entries instead of 5 as data.npy has values; save the matrix again",
        ),
        (
            3,
            vector_f64(&[0.0; 5]),
            "member indices.npy, header: float64 numbers instead of integers; save it again",
        ),
    ] {
        let mut members = csr_members();
        members[member].1 = content;
        assert_eq!(folder.refusal("m.npz", zip_file(&members, zip::CompressionMethod::Deflated)), message);
    }
    let mut members = csr_members();
    members.remove(2);
    assert_eq!(
        folder.refusal("m.npz", zip_file(&members, zip::CompressionMethod::Stored)),
        "member indptr.npy: missing; save the matrix again with scipy.sparse.save_npz"
    );
    members.remove(0);
    assert_eq!(
        folder.refusal("m.npz", zip_file(&members, zip::CompressionMethod::Stored)),
        "archive: the archive contains 3 members (shape.npy, indices.npy, data.npy) but no SciPy sparse matrix; use scipy.sparse.save_npz, or save a single array as .npy"
    );
}

#[test]
fn table_cells() {
    let folder = Folder::new();
    for (text, message) in [
        ("a,b\n1,2\n3\n", "line 3: 1 cells, but line 2 has 2; complete or remove the line"),
        ("1,2\n1,2,3\n", "line 2: 3 cells, but line 1 has 2; complete or remove the line"),
        (
            "1,2\n3,x\n",
            "line 2, column 2: \"x\" is not a number; correct it, and check that commas separate the cells",
        ),
        (
            "1,2\nx,3\n",
            "line 2, column 1: \"x\" is not a number; correct it, or specify that the table has row names",
        ),
        (
            "1,2\n3,\n",
            "line 2, column 2: the cell is empty; if it is a missing value, use missing nan; otherwise \
             replace it",
        ),
        (
            "1,NA\n3,4\n",
            "line 1, column 2: \"NA\" is not a number; if it is a missing value, use missing nan; otherwise \
             replace it",
        ),
        (
            ",5\n1,2\n",
            "line 1, column 1: the cell is empty; correct it, or specify that the table has a header",
        ),
        ("a,b,c\n1,2\n", "line 1: 3 column names, but line 2 has 2 cells; complete the header"),
        ("a;b\n1;2\n", "line 1: row names without values; check that commas separate the cells"),
        ("a,b\n", "shape: the matrix is empty (0 x 0); give one with rows and columns"),
    ] {
        assert_eq!(folder.refusal("m.csv", text), message, "{text:?}");
    }
    let latin = folder.refusal("m.csv", b"a,b\xe9\n1,2\n");
    assert_eq!(latin, "line 1, column 2: the text is not UTF-8; save the file in that encoding");
    let latin = folder.refusal("m.csv", b"1,2\n1,\xe9\n");
    assert_eq!(latin, "line 2, column 2: the text is not UTF-8; save the file in that encoding");
}

#[test]
fn lines_are_counted_whatever_ends_them() {
    let folder = Folder::new();
    for (text, place) in [
        ("a,b|1,2|3,x|", "line 3, column 2:"),
        ("a,b|1,2|3|", "line 3: 1 cells, but line 2 has 2;"),
        ("a,b||1,2|||3,x", "line 6, column 2:"),
        ("||a,b|1,2|3|", "line 5: 1 cells, but line 4 has 2;"),
        ("\u{feff}a,b|1,x|", "line 2, column 2:"),
        ("\"a|c\",b|\"1\",2|3,x|", "line 4, column 2:"),
        ("|a,b,c|1,2|", "line 2: 3 column names, but line 3 has 2 cells;"),
        ("|a;b|1;2|", "line 2: row names without values"),
    ] {
        for end in ["\n", "\r\n", "\r"] {
            let text = text.replace('|', end);
            for message in [folder.refusal("m.csv", &text), folder.refusal("m.csv.gz", gzip(text.as_bytes()))]
            {
                assert!(message.starts_with(place), "{text:?}: {message}");
            }
        }
    }
    let mtx = "%%MatrixMarket matrix coordinate real general\r\n% comment\r\n\r\n2 3 1\r\n1 1 x\r\n";
    assert!(folder.refusal("m.mtx", mtx).starts_with("line 5:"));
}

#[test]
fn the_user_overrides_the_guess_about_a_table() {
    let folder = Folder::new();
    let path = folder.write("m.csv", ",2001,2002\n1,5,6\n2,7,8\n");
    let options = ReadOptions { header: Presence::Yes, ..OPTIONS };
    let input = read::<f64>(&path, &options).unwrap();
    assert_eq!(input.col_labels.unwrap(), ["2001", "2002"]);
    assert_eq!(input.row_labels.unwrap(), ["1", "2"]);
    let path = folder.write("m.csv", "7,2001,2002\n1,5,6\n");
    let shape = |header, row_names| {
        let input = read::<f64>(&path, &ReadOptions { header, row_names, ..OPTIONS }).unwrap();
        (input.matrix.rows(), input.matrix.cols())
    };
    assert_eq!(shape(Presence::Auto, Presence::Auto), (2, 3));
    assert_eq!(shape(Presence::Yes, Presence::Auto), (1, 3));
    assert_eq!(shape(Presence::Auto, Presence::Yes), (2, 2));
    assert_eq!(shape(Presence::Yes, Presence::Yes), (1, 2));
    let path = folder.write("m.csv", "id,2001,2002\n1,5,6\n2,7,8\n");
    let input = read::<f64>(&path, &ReadOptions { row_names: Presence::Yes, ..OPTIONS }).unwrap();
    assert_eq!(input.col_labels.unwrap(), ["2001", "2002"]);
    assert_eq!(input.row_labels.unwrap(), ["1", "2"]);
    let path = folder.write("m.csv", "a,b\n1,2\n");
    let refused =
        read::<f64>(&path, &ReadOptions { header: Presence::No, ..OPTIONS }).unwrap_err().to_string();
    assert!(refused.contains("line 1, column 2: \"b\" is not a number"), "{refused}");
}
