// Finds the cgroups of a volume's users. CSI does not provide them, so they come from patterns that the operator
// configures (`/kubepods/**`) and from the pod uid, if the node agent passes it, which is part of the cgroup name.
// Cgroups can also be set explicitly (limit-reconciler.ts).

export interface WorkloadCgroups {
  /** As paths in the hierarchy. */
  find(podUids: readonly string[]): Promise<string[]>
}

export interface WorkloadCgroupsDeps {
  readonly patterns: readonly string[]
  /** Lists all cgroups; called only if there are cgroups to find. */
  list(): Promise<readonly string[]>
}

export function createWorkloadCgroups({ patterns, list }: WorkloadCgroupsDeps): WorkloadCgroups {
  const exact = patterns.filter((pattern) => !pattern.includes('*'))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map(globOf)

  return {
    async find(podUids) {
      const names = podUids.filter(isUid).flatMap((uid) => [`pod${uid}`, `pod${uid.replaceAll('-', '_')}`])
      if (globs.length === 0 && names.length === 0) return exact
      const isOfPod = (cgroup: string) => cgroup.split('/').some((part) => names.some((name) => isPodPart(part, name)))
      const found = (await list()).filter((cgroup) => globs.some((glob) => glob.test(cgroup)) || isOfPod(cgroup))
      return [...new Set([...exact, ...found])]
    },
  }
}

/** `*` matches any part of one path element, `**` any number of elements. */
export function globOf(pattern: string): RegExp {
  const parts = pattern.split(/(\*\*|\*)/).map((part) => {
    if (part === '**') return '.*'
    if (part === '*') return '[^/]*'
    return part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^/?${parts.join('').replace(/^\//, '')}$`)
}

const isUid = (text: string) => /^[A-Za-z0-9-]{8,64}$/.test(text)

/** `pod<uid>`, or with the systemd cgroup driver `kubepods-burstable-pod<uid>.slice`. */
const isPodPart = (part: string, name: string) => part === name || part.endsWith(`-${name}.slice`)
