//! Training: stage 1 on fixed clusters, the adjacency, stage 2 end to end.

pub(crate) mod head;
