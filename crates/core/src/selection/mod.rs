//! Compares numbers of components: how well each predicts held-out entries, and how stable its components are
//! under different starts.

mod assignment;
mod blocks;
mod cophenetic;
mod parallel;
mod similarity;
mod suggestion;
mod survey;

pub use assignment::assign;
pub use blocks::{FOLDS, HeldOut, check_shape};
pub use cophenetic::cophenetic_correlation;
pub use similarity::{Stability, cosines};
pub use suggestion::{STABLE, Suggestion, suggest};
pub use survey::{
    FitStore, HeldOutLoss, NoStore, RestartFit, Survey, SurveyProgress, SurveyRequest, SurveyRow, Surveyed,
    survey,
};
