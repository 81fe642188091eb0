import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ObjectSet } from './object-set.ts'

interface Tagged {
  readonly name: string
  readonly tags: readonly string[]
}

const anyKey = fc.constantFrom('a', 'b', 'c', 'd')
const anyTags = fc.array(fc.constantFrom('x', 'y', 'z'), { maxLength: 4 })

it('ObjectSet lists exactly the objects with a value of an index, in the order of the last writes that changed the values, for any sequence of writes', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ key: anyKey, tags: fc.option(anyTags) }), { maxLength: 40 }), (changes) => {
      const set = new ObjectSet<Tagged>()
      set.addIndex('tag', ({ tags }) => tags)
      const model = new Map<string, Tagged>()
      for (const { key, tags } of changes) {
        // Setting the key of a Map again does not change its position.
        if (tags?.join() !== model.get(key)?.tags.join()) model.delete(key)
        if (tags === null) set.delete(key)
        else {
          model.set(key, { name: key, tags })
          set.put(key, model.get(key)!)
        }
        for (const tag of ['x', 'y', 'z']) {
          expect(set.byIndex('tag', tag)).toEqual([...model.values()].filter(({ tags }) => tags.includes(tag)))
        }
        expect(set.size).toBe(model.size)
      }
    }),
  )
})

it('ObjectSet adds an index to objects that it already has', () => {
  const set = new ObjectSet<Tagged>()
  for (const name of ['a', 'b', 'c']) set.put(name, { name, tags: name === 'c' ? [] : ['x', 'x'] })
  set.addIndex('tag', ({ tags }) => tags)
  expect(set.byIndex('tag', 'x').map(({ name }) => name)).toEqual(['a', 'b'])
  set.delete('a')
  set.delete('b')
  expect(set.byIndex('tag', 'x')).toEqual([])
})

it('ObjectSet changes no bucket when an update has the same values', () => {
  const set = new ObjectSet<Tagged>()
  set.addIndex('tag', ({ tags }) => tags)
  for (const name of ['a', 'b', 'c']) set.put(name, { name, tags: ['x'] })
  set.put('a', { name: 'a', tags: ['x'] })
  expect(set.byIndex('tag', 'x').map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  set.put('a', { name: 'a', tags: ['y', 'x'] })
  expect(set.byIndex('tag', 'x').map(({ name }) => name)).toEqual(['b', 'c', 'a'])
})
