// Finds the cgroups of the pods that use a volume. CSI does not pass them to the driver, so they are found by patterns that the
// operator configures (`/kubepods/**`), and by the pod UID in the cgroup name, if the node agent passes the UID. Cgroups can
// also be set explicitly (limit-reconciler.ts).

export interface WorkloadCgroups {
  /** Returns paths in the hierarchy. */
  find(podUids: readonly string[]): Promise<string[]>
  /** Calls `onCreate` after cgroups were created. Returns undefined if the hierarchy cannot be watched. */
  watch?(onCreate: () => void): Promise<{ close(): void } | undefined>
}

export interface WorkloadCgroupsDeps {
  readonly patterns: readonly string[]
  /** Lists all cgroups. Called only if there are patterns with `*` or pod UIDs. */
  list(): Promise<readonly string[]>
  readonly watch?: WorkloadCgroups['watch']
}

export function createWorkloadCgroups({ patterns, list, watch }: WorkloadCgroupsDeps): WorkloadCgroups {
  const exactPaths = patterns.filter((pattern) => !pattern.includes('*'))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map(parseGlob)

  return {
    ...(watch ? { watch } : {}),
    async find(podUids) {
      const names = podUids.filter(isUid).flatMap((uid) => [`pod${uid}`, `pod${uid.replaceAll('-', '_')}`])
      if (globs.length === 0 && names.length === 0) return exactPaths
      const belongsToPod = (cgroup: string) =>
        cgroup.split('/').some((element) => names.some((name) => isPodElement(element, name)))
      const matchingCgroups = (await list()).filter(
        (cgroup) => globs.some((glob) => glob.test(cgroup)) || belongsToPod(cgroup),
      )
      return [...new Set([...exactPaths, ...matchingCgroups])]
    },
  }
}

/** Converts a pattern to a regular expression: `*` matches within one path element, `**` any number of elements. */
export function parseGlob(pattern: string): RegExp {
  const elements = pattern.split(/(\*\*|\*)/).map((element) => {
    if (element === '**') return '.*'
    if (element === '*') return '[^/]*'
    return element.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^/?${elements.join('').replace(/^\//, '')}$`)
}

const isUid = (text: string) => /^[A-Za-z0-9-]{8,64}$/.test(text)

/** Matches `pod<uid>`, or `kubepods-burstable-pod<uid>.slice` with the systemd cgroup driver. */
const isPodElement = (element: string, name: string) => element === name || element.endsWith(`-${name}.slice`)
