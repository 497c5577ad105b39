//! A map from dense numbers to pages: a small map of directories, each of 256 pages, copied on write.
//!
//! Purpose: one look-up of a few steps for a million ids, a clone of the root that costs one counter, and a write
//! after a clone that copies one page. Invariants: memory follows what is held, never the size of a number. What it
//! does not do: know what a page holds.

use alloc::{collections::BTreeMap, sync::Arc};

/// Pages in one directory.
const PAGES: u64 = 256;

/// One directory: its pages and what its owner says of them all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Directory<P, S> {
    pages: [Option<Arc<P>>; PAGES as usize],
    /// What the owner keeps about all pages of this directory.
    pub(crate) summary: S,
}

/// Pages by number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pages<P, S> {
    directories: Arc<BTreeMap<u64, Arc<Directory<P, S>>>>,
}

impl<P, S> Default for Pages<P, S> {
    fn default() -> Self {
        Self { directories: Arc::default() }
    }
}

impl<P: Clone + Default, S: Clone + Default> Directory<P, S> {
    fn new() -> Self {
        Self { pages: [const { None }; PAGES as usize], summary: S::default() }
    }

    /// Its pages in order, with their numbers in this directory.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u64, &P)> {
        let numbered = (0..PAGES).zip(&self.pages);
        numbered.filter_map(|(number, page)| page.as_deref().map(|page| (number, page)))
    }
}

impl<P: Clone + Default, S: Clone + Default> Pages<P, S> {
    /// One page.
    pub(crate) fn get(&self, page: u64) -> Option<&P> {
        let directory = self.directories.get(&(page / PAGES))?;
        directory.pages[(page % PAGES) as usize].as_deref()
    }

    /// One page to write, with the summary of its directory, if the page is there.
    pub(crate) fn get_mut(&mut self, page: u64) -> Option<(&mut P, &mut S)> {
        let directory = Arc::make_mut(Arc::make_mut(&mut self.directories).get_mut(&(page / PAGES))?);
        let found = directory.pages[(page % PAGES) as usize].as_mut()?;
        Some((Arc::make_mut(found), &mut directory.summary))
    }

    /// One page to write, made if it is not there.
    pub(crate) fn entry(&mut self, page: u64) -> (&mut P, &mut S) {
        let directories = Arc::make_mut(&mut self.directories);
        let directory = directories.entry(page / PAGES).or_insert_with(|| Arc::new(Directory::new()));
        let directory = Arc::make_mut(directory);
        let found = directory.pages[(page % PAGES) as usize].get_or_insert_default();
        (Arc::make_mut(found), &mut directory.summary)
    }

    /// Takes one page away, and its directory with the last one.
    pub(crate) fn remove(&mut self, page: u64) {
        let directories = Arc::make_mut(&mut self.directories);
        let Some(directory) = directories.get_mut(&(page / PAGES)) else { return };
        let directory = Arc::make_mut(directory);
        directory.pages[(page % PAGES) as usize] = None;
        if directory.pages().next().is_none() {
            directories.remove(&(page / PAGES));
        }
    }

    /// All pages in order, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &P)> {
        self.directories.iter().flat_map(|(number, directory)| {
            let first = number * PAGES;
            directory.pages().map(move |(page, found)| (first + page, found))
        })
    }

    /// All directories in order, with the number of their first page.
    pub(crate) fn directories(&self) -> impl Iterator<Item = (u64, &Directory<P, S>)> {
        self.directories.iter().map(|(number, directory)| (number * PAGES, &**directory))
    }

    /// Numbers of the pages that are there between two numbers, both included.
    pub(crate) fn numbers(&self, first: u64, last: u64) -> impl Iterator<Item = u64> {
        let directories = (first <= last).then(|| self.directories.range(first / PAGES..=last / PAGES));
        let pages = directories
            .into_iter()
            .flatten()
            .flat_map(|(number, directory)| directory.pages().map(move |(page, _)| number * PAGES + page));
        pages.filter(move |page| first <= *page && *page <= last)
    }

    /// The directory that holds a page, to write its summary.
    pub(crate) fn directory_mut(&mut self, page: u64) -> Option<&mut Directory<P, S>> {
        Arc::make_mut(&mut self.directories).get_mut(&(page / PAGES)).map(Arc::make_mut)
    }
}
