//! Choosing the number of components: for each number, how well it predicts held-out entries and how stable its
//! components are when the start changes.

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
