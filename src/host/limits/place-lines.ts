// Puts a device's lines into several cgroups and tells how that went. A cgroup that is gone needs none; one that refuses
// is told about, and does not keep the others from theirs: a volume is mounted whether or not it can be limited.

export interface Placed {
  readonly holders: readonly string[]
  /** As sentences. */
  readonly refusals: readonly string[]
}

/** `write` gives false for a cgroup that does not exist. */
export async function placeLines(
  cgroups: Iterable<string>,
  write: (cgroup: string) => Promise<boolean>,
): Promise<Placed> {
  const holders: string[] = []
  const refusals: string[] = []
  for (const cgroup of cgroups) {
    try {
      if (await write(cgroup)) holders.push(cgroup)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === undefined || !KERNEL_REFUSES.includes(code)) throw error
      refusals.push(`the kernel refused the limit in cgroup ${cgroup} (${code})`)
    }
  }
  return { holders, refusals }
}

/** No right to write there, a read-only hierarchy, or (v2) processes in a cgroup that should hand controllers down. */
const KERNEL_REFUSES = ['EACCES', 'EPERM', 'EROFS', 'EBUSY', 'EINVAL', 'EOPNOTSUPP']
