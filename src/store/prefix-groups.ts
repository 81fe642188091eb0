// PrefixGroups: groups of members by key prefix, with a lookup of the groups whose prefix matches a key.
// A lookup costs one hash access per distinct prefix length, regardless of the number of members.

export interface PrefixGroup<Member> {
  readonly prefix: string
  readonly members: Set<Member>
}

export class PrefixGroups<Member> {
  readonly #groups = new Map<string, PrefixGroup<Member>>()
  /** Number of groups for each prefix length. */
  readonly #lengths = new Map<number, number>()

  add(prefix: string, member: Member): void {
    let group = this.#groups.get(prefix)
    if (!group) {
      group = { prefix, members: new Set() }
      this.#groups.set(prefix, group)
      this.#lengths.set(prefix.length, (this.#lengths.get(prefix.length) ?? 0) + 1)
    }
    group.members.add(member)
  }

  remove(prefix: string, member: Member): void {
    const group = this.#groups.get(prefix)
    if (!group?.members.delete(member) || group.members.size > 0) return
    this.#groups.delete(prefix)
    const remainingGroups = (this.#lengths.get(prefix.length) ?? 0) - 1
    if (remainingGroups > 0) this.#lengths.set(prefix.length, remainingGroups)
    else this.#lengths.delete(prefix.length)
  }

  findMatching(key: string): PrefixGroup<Member>[] {
    const groups: PrefixGroup<Member>[] = []
    for (const length of this.#lengths.keys()) {
      if (length > key.length) continue
      const group = this.#groups.get(key.slice(0, length))
      if (group) groups.push(group)
    }
    return groups
  }
}
