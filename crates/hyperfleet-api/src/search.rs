//! The search language (TSL): which resources a list holds, in which order, with which fields.
