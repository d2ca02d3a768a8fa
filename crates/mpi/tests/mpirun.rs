//! The transport under a real `mpirun`.

use std::process::Command;

#[test]
fn mpi_conforms_on_1_to_4_ranks() {
    for ranks in ["1", "2", "3", "4"] {
        let output = Command::new(std::env::var_os("MPIRUN").unwrap_or("mpirun".into()))
            .args(["-n", ranks, env!("CARGO_BIN_EXE_partwise-mpi-check")])
            // Settings that Open MPI needs for root and for machines with fewer cores than processes; other
            // libraries ignore them.
            .envs([
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
                // Seconds after which both mpirun end a job that hangs.
                ("MPIEXEC_TIMEOUT", "300"),
            ])
            .output()
            .expect("mpirun; `make test` installs it");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), format!("{ranks} ranks conform"));
    }
}
