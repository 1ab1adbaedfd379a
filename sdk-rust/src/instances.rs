// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//! The instances of one kind in one library.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::edge::INVALID;

/// Instances by the id that the host chose.
///
/// Calls that may overlap read their instance, `open` and `close` own it. The table itself is
/// locked for the look-up only, so that no instance waits for another.
pub struct Instances<C> {
    by_id: RwLock<BTreeMap<u32, Arc<RwLock<C>>>>,
}

impl<C> Instances<C> {
    /// An empty table.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { by_id: RwLock::new(BTreeMap::new()) }
    }

    /// Puts an instance under a free id and runs `call` on it before anybody else can. The id stays
    /// taken whatever the result.
    pub(crate) fn insert(&self, id: u32, instance: C, call: impl FnOnce(&mut C) -> i32) -> i32 {
        let instance = Arc::new(RwLock::new(instance));
        let mut opening = write(&instance);
        {
            let mut by_id = write(&self.by_id);
            if by_id.contains_key(&id) {
                return INVALID;
            }
            by_id.insert(id, Arc::clone(&instance));
        }
        call(&mut opening)
    }

    /// Runs `call` beside other such calls.
    pub(crate) fn read(&self, id: u32, call: impl FnOnce(&C) -> i32) -> i32 {
        self.find(id).map_or(INVALID, |instance| call(&read(&instance)))
    }

    /// Runs `call` alone.
    pub(crate) fn write(&self, id: u32, call: impl FnOnce(&mut C) -> i32) -> i32 {
        self.find(id).map_or(INVALID, |instance| call(&mut write(&instance)))
    }

    /// Frees the id and runs `call` as soon as all other calls have returned.
    pub(crate) fn remove(&self, id: u32, call: impl FnOnce(&mut C) -> i32) -> i32 {
        let removed = write(&self.by_id).remove(&id);
        removed.map_or(INVALID, |instance| call(&mut write(&instance)))
    }

    fn find(&self, id: u32) -> Option<Arc<RwLock<C>>> {
        read(&self.by_id).get(&id).cloned()
    }
}

// Panics are caught inside the locks, so that poison says nothing.

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
