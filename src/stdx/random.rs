//! Random names, from a source that is passed in so that tests get the same ones every time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where random numbers come from.
pub trait Random: Send + Sync + fmt::Debug {
    /// The next 64 random bits.
    fn next(&self) -> u64;
}

/// The operating system's random numbers.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn next(&self) -> u64 {
        // The system source fails only before it is seeded at boot; the time is then good enough
        // for a name, which is checked against existing ones anyway.
        getrandom::u64().unwrap_or_else(|_| jiff::Timestamp::now().as_nanosecond() as u64)
    }
}

/// A fixed sequence, for tests.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The sequence that `seed` starts.
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(seed)))
    }
}

impl Random for SeededRandom {
    fn next(&self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood 2014).
        let mut z = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// `len` characters of `alphabet`.
pub fn name(random: &dyn Random, alphabet: &[u8], len: usize) -> String {
    let mut bits = random.next();
    let mut left = 12;
    (0..len)
        .map(|_| {
            if left == 0 {
                (bits, left) = (random.next(), 12);
            }
            left -= 1;
            let n = alphabet.len() as u64;
            let c = alphabet[(bits % n) as usize];
            bits /= n;
            c as char
        })
        .collect()
}
