module mbcas/evaluation/runtimes

go 1.25
