$rounds = (int) $argv[1];
$key = getmypid();
$lock = sem_get($key, 1, 0600, true);
$memory = shm_attach($key, 1000, 0600);
shm_put_var($memory, 1, 0);
$children = [];
for ($i = 0; $i < 4; $i++) {
    $child = pcntl_fork();
    if ($child == 0) {
        for ($round = 0; $round < $rounds; $round++) {
            sem_acquire($lock);
            shm_put_var($memory, 1, shm_get_var($memory, 1) + 1);
            sem_release($lock);
        }
        posix_kill(getmypid(), SIGKILL);
    }
    $children[] = $child;
}
foreach ($children as $child) pcntl_waitpid($child, $status);
echo shm_get_var($memory, 1), "\n";
shm_remove($memory);
sem_remove($lock);
