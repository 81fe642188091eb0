import { expect, it } from 'vitest'
import { PrefixGroups } from './prefix-groups.ts'

it('PrefixGroups returns every member whose prefix matches the key, until the member is removed', () => {
  const groups = new PrefixGroups<string>()
  for (const [prefix, member] of Object.entries({ '': 'all', a: 'a', 'a/': 'a/', 'a/b': 'a/b', b: 'b' })) {
    groups.add(prefix, member)
  }
  groups.add('a/', 'second')
  const findMembers = (key: string) => groups.findMatching(key).flatMap(({ members }) => [...members])
  expect(findMembers('a/bc')).toEqual(['all', 'a', 'a/', 'second', 'a/b'])
  expect(findMembers('a')).toEqual(['all', 'a'])
  expect(findMembers('c')).toEqual(['all'])

  groups.remove('a/', 'a/')
  groups.remove('a/', 'unknown')
  expect(findMembers('a/')).toEqual(['all', 'a', 'second'])
  groups.remove('a/', 'second')
  groups.remove('', 'all')
  expect(findMembers('a/b')).toEqual(['a', 'a/b'])
})
