//! How the coordinator and every party open a sum: from masked words that their parties have signed, and from
//! secrets that remove the masks, each checked against what was signed before anything was revealed.

use super::commitment::{Blame, Commitment, Revealed, of, parties_of, survivors, words_digest};
use super::keys::{Context, SIGNATURE_BYTES};
use super::mask::{Seed, Sign, apply};
use super::sharing::{deal, recover};
use super::{OrderTip, SumId, Words};

/// All that a party needs to open a sum and to verify that it is the one that all have signed.
#[derive(Clone, PartialEq, Eq)]
pub struct Opening {
    /// The attempt at the sum.
    pub place: SumId,
    /// The hash over the list of keys of the attempt's epoch.
    pub keys: [u8; 32],
    /// The survivors' commitments to their uploads.
    pub commitments: Vec<Commitment>,
    /// The survivors' signatures on the list of all commitments.
    pub signatures: Vec<(u16, [u8; SIGNATURE_BYTES])>,
    /// The secrets that remove the masks, by party.
    pub revealed: Vec<Revealed>,
    /// The masked words that were not passed on earlier.
    pub uploads: Vec<(u16, Words)>,
    /// The order of the sums of all cohorts up to this one, where it has a place there.
    pub order: Option<OrderTip>,
}

/// Why a sum was not opened.
#[derive(Debug, PartialEq, Eq)]
pub enum NotOpened {
    /// Parties that left would have to reveal more.
    Lacking,
    /// Something differs from what was signed.
    Blamed(Blame),
}

impl From<Blame> for NotOpened {
    fn from(blame: Blame) -> Self {
        NotOpened::Blamed(blame)
    }
}

/// Checks that enough of the survivors have signed this list, and that none has signed another.
pub fn check_signatures(
    context: Context<'_>,
    list: &[Commitment],
    signatures: &[(u16, [u8; SIGNATURE_BYTES])],
) -> Result<(), Blame> {
    let text = context.echo_text(&context.list_digest(list));
    let survivors = survivors(list);
    let mut signers: Vec<u16> = Vec::new();
    for (party, signature) in signatures.iter().filter(|(party, _)| survivors.contains(party)) {
        if !context.cohort.has_signed(*party, &text, signature) {
            let problem =
                format!("a list of survivors that party {party} did not sign: it was sent a different one");
            return Err(Blame::new(0, problem));
        }
        if !signers.contains(party) {
            signers.push(*party);
        }
    }
    let needed = context.cohort.threshold();
    if signers.len() < needed {
        let problem = format!("{} signatures, but {needed} are needed", signers.len());
        return Err(Blame::new(0, problem));
    }
    Ok(())
}

/// Checks that each upload matches its commitment.
pub fn check_uploads<'a>(
    list: &[Commitment],
    upload: impl Fn(u16) -> Option<&'a Words>,
) -> Result<(), Blame> {
    for Commitment { party, words: expected, .. } in list {
        let Some(words) = upload(*party) else {
            return Err(Blame::new(0, format!("no upload of party {party}, which is in the sum")));
        };
        if words_digest(words) != *expected {
            return Err(Blame::new(
                0,
                format!("an upload of party {party} that differs from the one it signed"),
            ));
        }
    }
    Ok(())
}

/// Computes the sum of the uploads without its masks. Every revealed secret is compared with what was signed.
/// A share that differs is the fault of its sender; if all shares match but do not belong together, it is the
/// fault of the dealer.
pub fn open<'a>(
    context: Context<'_>,
    list: &[Commitment],
    revealed: &[Revealed],
    upload: impl Fn(u16) -> Option<&'a Words>,
) -> Result<Words, NotOpened> {
    let gone = check_revealed(context, list, revealed)?;
    let mut sum: Option<Words> = None;
    for commitment in list {
        let words = upload(commitment.party);
        let Some(words) = words.filter(|words| sum.as_ref().is_none_or(|sum| sum.fits(words))) else {
            let problem = format!("no upload of party {} with the size of the others", commitment.party);
            return Err(Blame::new(0, problem).into());
        };
        match &mut sum {
            Some(sum) => sum.add(words),
            None => sum = Some(words.clone()),
        }
    }
    let mut sum = sum.unwrap_or_default();
    for commitment in list {
        let seed = self_mask(context, commitment, revealed)?;
        apply(seed.stream().bytes(), Sign::Subtract, &mut sum);
        for gone in &gone {
            let seed = mask_with(context, commitment, *gone, revealed)?;
            apply(seed.stream().bytes(), Sign::between(commitment.party, *gone).opposite(), &mut sum);
        }
    }
    Ok(sum)
}

/// Checks that each party revealed exactly what removes the masks. Returns the parties that left, whose
/// pairwise masks remain to be removed.
fn check_revealed(
    context: Context<'_>,
    list: &[Commitment],
    revealed: &[Revealed],
) -> Result<Vec<u16>, Blame> {
    let digest = context.list_digest(list);
    let survivors = survivors(list);
    let mut roster = list.first().map_or_else(Vec::new, |first| parties_of(&first.shares));
    roster.retain(|party| !survivors.contains(party));
    if !revealed.windows(2).all(|pair| pair[0].party < pair[1].party) {
        return Err(Blame::new(0, "secrets of a party twice"));
    }
    for part in revealed {
        let party = part.party;
        let text = context.reveal_text(&digest, part);
        if !survivors.contains(&party) || !context.cohort.has_signed(party, &text, &part.signature) {
            return Err(Blame::new(0, format!("secrets that party {party} did not reveal")));
        }
        if parties_of(&part.shares) != survivors || parties_of(&part.seeds) != roster {
            return Err(Blame::new(party, "secrets other than those that remove the masks"));
        }
    }
    Ok(roster)
}

/// The seed of a survivor's self-mask.
fn self_mask(
    context: Context<'_>,
    commitment: &Commitment,
    revealed: &[Revealed],
) -> Result<Seed, NotOpened> {
    let dealer = commitment.party;
    let mut shares = Vec::new();
    for part in revealed {
        let Some(share) = of(&part.shares, dealer) else { return Err(NotOpened::Lacking) };
        let expected = of(&commitment.shares, part.party);
        if expected != Some(&context.share_digest(dealer, part.party, share)) {
            let problem = format!("a wrong share of the mask of party {dealer}");
            return Err(Blame::new(part.party, problem).into());
        }
        shares.push(&share[..]);
    }
    let (threshold, members) = (context.cohort.threshold(), &context.cohort.members);
    if shares.len() < threshold {
        return Err(NotOpened::Lacking);
    }
    let inconsistent = || NotOpened::from(Blame::new(dealer, "inconsistent shares of its mask"));
    let seed = recover(shares.into_iter().take(threshold), threshold).ok_or_else(inconsistent)?;
    if context.seed_digest(dealer, seed.bytes()) != commitment.seed {
        return Err(inconsistent());
    }
    // The dealer's shares follow from the seed alone: parties that revealed nothing must also have received
    // such a share.
    for ((receiver, _), share) in members.iter().zip(deal(&seed, threshold, members.len())) {
        let dealt = context.share_digest(dealer, *receiver, share.bytes());
        if of(&commitment.shares, *receiver).is_some_and(|signed| *signed != dealt) {
            return Err(inconsistent());
        }
    }
    Ok(seed)
}

/// The seed of the mask between a survivor and a party that left.
fn mask_with(
    context: Context<'_>,
    commitment: &Commitment,
    gone: u16,
    revealed: &[Revealed],
) -> Result<Seed, NotOpened> {
    let party = commitment.party;
    let part = revealed.iter().find(|part| part.party == party);
    let seed = part.and_then(|part| of(&part.seeds, gone)).ok_or(NotOpened::Lacking)?;
    if of(&commitment.pairs, gone) != Some(&context.pair_digest(party, gone, seed)) {
        return Err(Blame::new(party, format!("a wrong seed of its mask with party {gone}")).into());
    }
    Ok(Seed::filled(|bytes| *bytes = *seed))
}
