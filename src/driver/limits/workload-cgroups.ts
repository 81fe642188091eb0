// Which cgroups the users of a volume are in. The protocol does not say, so there are two ways to know: patterns the
// operator gives (`/kubepods/**`), and the pod's uid where the node agent passes it on, which is part of the cgroup's
// name. Others may name cgroups through the limit keeper.

export interface WorkloadCgroups {
  /** As paths in the hierarchy. */
  find(podUids: readonly string[]): Promise<string[]>
}

export interface WorkloadCgroupsDeps {
  readonly patterns: readonly string[]
  /** Every cgroup there is; asked only when there is something to look for. */
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

/** `*` stands for any part of one name, `**` for any number of names. */
export function globOf(pattern: string): RegExp {
  const parts = pattern.split(/(\*\*|\*)/).map((part) => {
    if (part === '**') return '.*'
    if (part === '*') return '[^/]*'
    return part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^/?${parts.join('').replace(/^\//, '')}$`)
}

const isUid = (text: string) => /^[A-Za-z0-9-]{8,64}$/.test(text)

/** `pod<uid>`, or as systemd names it: `kubepods-burstable-pod<uid>.slice`. */
const isPodPart = (part: string, name: string) => part === name || part.endsWith(`-${name}.slice`)
