//! Keys: who a party is (Ed25519), what two parties share (X25519), and what is derived from that (HKDF).

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use hkdf::Hkdf;
use rand::CryptoRng;
use sha2::{Digest, Sha256};
use x25519_dalek::{PublicKey, ReusableSecret};
use zeroize::{Zeroize, Zeroizing};

use super::mask::Seed;
use super::sharing::Share;
use super::transcript::TranscriptHash;
use super::{Cohort, SumId};

/// What a party signs with. Not printable, wiped when dropped.
#[derive(Clone)]
pub struct Identity(SigningKey);

/// The public key that identifies a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityKey(VerifyingKey);

/// Size of a signature in bytes.
pub const SIGNATURE_BYTES: usize = 64;

impl Identity {
    /// A new one.
    pub fn new(rng: &mut impl CryptoRng) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *secret);
        Identity(SigningKey::from_bytes(&secret))
    }

    /// Creates the identity from its secret.
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        Identity(SigningKey::from_bytes(secret))
    }

    /// The public key of this identity.
    pub fn key(&self) -> IdentityKey {
        IdentityKey(self.0.verifying_key())
    }

    /// Signs.
    pub fn sign(&self, text: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(text).to_bytes()
    }
}

impl IdentityKey {
    /// Whether the signature is this party's.
    pub fn has_signed(&self, text: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.0.verify_strict(text, &Signature::from_bytes(signature)).is_ok()
    }

    /// Parses a key; `None` if it is invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        VerifyingKey::from_bytes(bytes.try_into().ok()?).ok().map(IdentityKey)
    }

    /// The key as bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

/// What a party signs when it joins an epoch: its public key there, and how far it is.
pub fn hello_text(cohort: &Cohort, party: u16, epoch: u32, round: u64, key: &[u8; 32]) -> Vec<u8> {
    let mut text = b"partwise hello 2".to_vec();
    text.extend_from_slice(&cohort.run);
    text.push(cohort.number);
    text.extend_from_slice(&party.to_le_bytes());
    text.extend_from_slice(&epoch.to_le_bytes());
    text.extend_from_slice(&round.to_le_bytes());
    text.extend_from_slice(key);
    text
}

/// A party's key of one epoch. It never leaves the party, whole or in shares.
pub struct EpochKey(ReusableSecret);

impl EpochKey {
    pub fn new(rng: &mut impl CryptoRng) -> Self {
        EpochKey(ReusableSecret::random_from_rng(rng))
    }

    pub fn public(&self) -> [u8; 32] {
        PublicKey::from(&self.0).to_bytes()
    }

    /// The secret shared by this party and the owner of `other`, or `None` if that key shares no secret (a point of
    /// low order).
    pub fn pair(&self, other: &[u8; 32]) -> Option<Pair> {
        let shared = self.0.diffie_hellman(&PublicKey::from(*other));
        shared.was_contributory().then(|| {
            let (mut key, _) = Hkdf::<Sha256>::extract(Some(b"partwise pair 2"), shared.as_bytes());
            let pair = Pair(Seed::filled(|bytes| bytes.copy_from_slice(&key)));
            key.as_mut_slice().zeroize();
            pair
        })
    }
}

/// The secret that two parties share in an epoch: a key to derive from.
pub struct Pair(Seed);

/// Which way a share travels between the two parties of a pair.
#[derive(Clone, Copy)]
pub struct Direction {
    pub from: u16,
    pub to: u16,
}

/// The attempt for which a key is derived.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub cohort: &'a Cohort,
    pub place: SumId,
    pub transcript: &'a TranscriptHash,
}

impl Context<'_> {
    /// The beginning of every text that is signed for a purpose in this attempt.
    pub fn text(&self, purpose: &[u8]) -> Vec<u8> {
        let Context { cohort, place, transcript } = self;
        [purpose, &cohort.run, &[cohort.number], transcript.bytes(), &place.bytes()].concat()
    }

    /// A digest bound to this attempt, its purpose and its parties.
    pub fn digest(&self, purpose: &[u8], parties: &[u16], bytes: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(self.text(purpose));
        parties.iter().for_each(|party| hash.update(party.to_le_bytes()));
        hash.update(bytes);
        hash.finalize().into()
    }
}

impl Pair {
    fn derive(&self, purpose: &[u8], context: Context<'_>) -> Seed {
        let Context { cohort, place, transcript } = context;
        let info: [&[u8]; 5] = [purpose, &cohort.run, &[cohort.number], &place.bytes(), transcript.bytes()];
        Seed::filled(|seed| match Hkdf::<Sha256>::from_prk(self.0.bytes()) {
            Ok(key) if key.expand_multi_info(&info, seed).is_ok() => {}
            _ => unreachable!("a key and a seed of 32 bytes each"),
        })
    }

    /// The seed of the mask between the two in one attempt.
    pub fn mask_seed(&self, context: Context<'_>) -> Seed {
        self.derive(b"mask", context)
    }

    /// Seals a share for transport from one of the two to the other: the key is used once, so the nonce may be 0.
    fn share_cipher(&self, direction: Direction, context: Context<'_>) -> ChaCha20Poly1305 {
        let Direction { from, to } = direction;
        let purpose = [b"share", &from.to_le_bytes()[..], &to.to_le_bytes()].concat();
        ChaCha20Poly1305::new(self.derive(&purpose, context).bytes().into())
    }

    /// Seals a share.
    pub fn seal(&self, direction: Direction, context: Context<'_>, share: &Share) -> Vec<u8> {
        let sealed = self.share_cipher(direction, context).encrypt(&Nonce::default(), share.bytes());
        sealed.unwrap_or_else(|_| unreachable!("a share is far below the cipher's limit"))
    }

    /// Opens a share, if it is what the other end sealed.
    pub fn open(&self, direction: Direction, context: Context<'_>, sealed: &[u8]) -> Option<Share> {
        let cipher = self.share_cipher(direction, context);
        let share = Zeroizing::new(cipher.decrypt(&Nonce::default(), sealed).ok()?);
        Share::new(&share)
    }
}
