//! Reads a database into the block cache before the first task, so that no task pays for a cold cache.
//!
//! The first read of a block costs a system call, a copy and fresh memory: tens of microseconds. On some
//! machines that is ten times the cost of a later GET of the same keys.

use rocksdb::{Cache, DB, ReadOptions};

/// How many rows are read between two checks of the cache's fill level.
const ROWS_PER_LOOK: u64 = 1_000;

/// Reads rows in key order, until there are no more or nine tenths of the cache are full: further rows
/// would evict the first ones.
///
/// Returns how many rows were read.
pub(crate) fn warm(db: &DB, cache: &Cache, cache_bytes: usize) -> Result<u64, rocksdb::Error> {
    let full = cache_bytes - cache_bytes / 10;
    let mut rows = db.raw_iterator_opt(ReadOptions::default());
    let mut read = 0;
    rows.seek_to_first();
    while rows.valid() {
        read += 1;
        if read % ROWS_PER_LOOK == 0 && cache.get_usage() >= full {
            break;
        }
        rows.next();
    }
    rows.status()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use rocksdb::{BlockBasedOptions, Options};

    use super::*;

    const ROWS: u64 = 20_000;
    const ROW_BYTES: usize = 200;

    fn database(cache: &Cache) -> (tempfile::TempDir, DB) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(cache);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        let db = DB::open(&options, folder.path()).expect("it opens");
        for row in 0..ROWS {
            let mut value = [0; ROW_BYTES];
            value.as_chunks_mut::<8>().0.iter_mut().enumerate().for_each(|(i, word)| {
                *word = (row + i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            });
            db.put(row.to_be_bytes(), value).expect("it is put");
        }
        db.flush().expect("it is flushed");
        (folder, db)
    }

    #[test]
    fn a_database_that_fits_is_read_whole() {
        let bytes = 64 << 20;
        let cache = Cache::new_lru_cache(bytes).expect("a cache");
        let (_folder, db) = database(&cache);
        assert_eq!(warm(&db, &cache, bytes).expect("it is read"), ROWS);
        assert!(cache.get_usage() > ROWS as usize * ROW_BYTES * 9 / 10, "its blocks are in the cache");
    }

    #[test]
    fn one_that_does_not_fit_is_read_until_the_cache_is_full() {
        let bytes = 1 << 20;
        let cache = Cache::new_lru_cache(bytes).expect("a cache");
        let (_folder, db) = database(&cache);
        let read = warm(&db, &cache, bytes).expect("it is read");
        assert!((1_000..ROWS / 2).contains(&read), "{read} rows for a cache of {bytes} bytes");
    }
}
