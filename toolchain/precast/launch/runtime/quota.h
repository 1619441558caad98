/* How many processors a process's control groups give it time for. */
#ifndef PRECAST_QUOTA_H
#define PRECAST_QUOTA_H

/* The smallest quota of the process's group and of those above it, in processors, rounded up; 0: there is none.
 * `groups` lists the process's groups, as /proc/self/cgroup does; `root` is where the hierarchies are mounted. */
int precast_quota(const char *groups, const char *root);

#endif
