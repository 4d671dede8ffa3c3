"""The words that pages know, a module for each subject. `make words` lists them in workshop/words.md."""
