"""Where things lie: the build cache, compilers; processes that end with their reason; progress of long waits."""
