//! The programs of the five mails: their own arguments and columns, on the engine of all rows.
