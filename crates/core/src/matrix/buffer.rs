//! Numbers that a matrix owns, or borrows from the memory of another owner.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A slice that keeps its owner alive.
pub struct Buffer<E>(Storage<E>);

enum Storage<E> {
    Owned(Vec<E>),
    /// Valid as long as the owner lives.
    Foreign(NonNull<[E]>, Arc<dyn Any + Send + Sync>),
}

// SAFETY: the numbers are only read, and their owner may be used and dropped on any thread.
unsafe impl<E: Send + Sync> Send for Buffer<E> {}
// SAFETY: as above.
unsafe impl<E: Send + Sync> Sync for Buffer<E> {}

impl<E> Buffer<E> {
    /// Numbers in memory that `owner` keeps, such as a NumPy array's. The owner is held as long as this buffer or a
    /// clone of it lives.
    ///
    /// # Safety
    /// `slice` must be aligned, initialised and unchanged until the owner is dropped.
    pub unsafe fn foreign(slice: NonNull<[E]>, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Buffer(Storage::Foreign(slice, owner))
    }
}

impl<E: Clone + Send + Sync + 'static> Buffer<E> {
    /// Numbers that are shared between clones.
    pub fn shared(numbers: Vec<E>) -> Self {
        let owner = Arc::new(numbers);
        let slice = NonNull::from(owner.as_slice());
        Buffer(Storage::Foreign(slice, owner))
    }

    /// The numbers of [`Buffer::shared`] as a vector, copied only if a clone still exists.
    pub fn unshared(self) -> Vec<E> {
        match self.0 {
            Storage::Owned(numbers) => numbers,
            Storage::Foreign(slice, owner) => match owner.downcast::<Vec<E>>() {
                Ok(owner) => Arc::unwrap_or_clone(owner),
                Err(owner) => Buffer(Storage::Foreign(slice, owner)).to_vec(),
            },
        }
    }
}

impl<E: Clone> Buffer<E> {
    /// Mutable access to the numbers, which are copied first if they belong to another owner.
    pub fn to_mut(&mut self) -> &mut Vec<E> {
        if let Storage::Foreign(..) = self.0 {
            self.0 = Storage::Owned(self.to_vec());
        }
        match &mut self.0 {
            Storage::Owned(numbers) => numbers,
            Storage::Foreign(..) => unreachable!("made its own above"),
        }
    }

    /// The numbers as a vector, copied if they belong to another owner.
    pub fn into_vec(self) -> Vec<E> {
        match self.0 {
            Storage::Owned(numbers) => numbers,
            Storage::Foreign(..) => self.to_vec(),
        }
    }
}

impl<E> Deref for Buffer<E> {
    type Target = [E];

    #[inline(always)]
    fn deref(&self) -> &[E] {
        match &self.0 {
            Storage::Owned(numbers) => numbers,
            // SAFETY: `foreign` was promised that it is valid while the owner lives, which is held here.
            Storage::Foreign(slice, _) => unsafe { slice.as_ref() },
        }
    }
}

impl<E> From<Vec<E>> for Buffer<E> {
    fn from(numbers: Vec<E>) -> Self {
        Buffer(Storage::Owned(numbers))
    }
}

impl<E> FromIterator<E> for Buffer<E> {
    fn from_iter<I: IntoIterator<Item = E>>(numbers: I) -> Self {
        Vec::from_iter(numbers).into()
    }
}

impl<E: Clone> Clone for Buffer<E> {
    fn clone(&self) -> Self {
        Buffer(match &self.0 {
            Storage::Owned(numbers) => Storage::Owned(numbers.clone()),
            Storage::Foreign(slice, owner) => Storage::Foreign(*slice, owner.clone()),
        })
    }
}

impl<E: PartialEq> PartialEq for Buffer<E> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<E: fmt::Debug> fmt::Debug for Buffer<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_numbers_are_copied_only_while_clones_exist() {
        let buffer = Buffer::shared(vec![1, 2, 3]);
        let place = buffer.as_ptr();
        let clone = buffer.clone();
        assert_eq!(clone.as_ptr(), place);
        let copied = clone.unshared();
        assert_ne!(copied.as_ptr(), place);
        let taken = buffer.unshared();
        assert_eq!((taken.as_ptr(), taken), (place, copied));
    }

    #[test]
    fn the_owner_lives_as_long_as_the_last_buffer() {
        static NUMBERS: [u8; 3] = [1, 2, 3];
        let owner = Arc::new(());
        // SAFETY: a static outlives everything.
        let buffer = unsafe { Buffer::foreign(NonNull::from(&NUMBERS[..]), owner.clone()) };
        let clone = buffer.clone();
        assert!(std::ptr::eq(&*clone, &NUMBERS[..]), "a clone is no copy");
        assert_eq!((Arc::strong_count(&owner), &clone), (3, &Buffer::from(vec![1, 2, 3])));
        let mut changed = buffer;
        changed.to_mut()[0] = 7;
        assert_eq!((changed[0], clone[0], Arc::strong_count(&owner)), (7, 1, 2));
        assert_eq!((clone.into_vec(), Arc::strong_count(&owner)), (vec![1, 2, 3], 1));
    }
}
