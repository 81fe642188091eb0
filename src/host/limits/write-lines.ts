// Writes the limit lines of a device to several cgroups. Missing cgroups are skipped. If the kernel rejects a line, the error
// is returned and the other cgroups are still written, because a volume is mounted even if it cannot be limited.

export interface WriteResult {
  /** The cgroups to which the line was written. */
  readonly cgroups: readonly string[]
  /** A message for each cgroup whose line the kernel rejected. */
  readonly errors: readonly string[]
}

/** `write` returns false if the cgroup does not exist. */
export async function writeLines(
  cgroups: Iterable<string>,
  write: (cgroup: string) => Promise<boolean>,
): Promise<WriteResult> {
  const writtenCgroups: string[] = []
  const errors: string[] = []
  for (const cgroup of cgroups) {
    try {
      if (await write(cgroup)) writtenCgroups.push(cgroup)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === undefined || !KERNEL_ERRORS.includes(code)) throw error
      errors.push(`the kernel rejected the limit in cgroup ${cgroup} (${code})`)
    }
  }
  return { cgroups: writtenCgroups, errors }
}

/**
 * EACCES and EPERM: the process lacks the permission. EROFS: the hierarchy is mounted read-only. EBUSY: the cgroup has processes
 * and therefore cannot enable a controller for its children (v2). EINVAL and EOPNOTSUPP: the kernel does not support the limit
 * for this device or cgroup.
 */
const KERNEL_ERRORS = ['EACCES', 'EPERM', 'EROFS', 'EBUSY', 'EINVAL', 'EOPNOTSUPP']
