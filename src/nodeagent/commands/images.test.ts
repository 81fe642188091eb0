import { describe, expect, it } from 'vitest'
import { describeUnknownImage, findImage } from './images.ts'

describe('findImage', () => {
  it.each([
    ['busybox', '/bin/sh'],
    ['registry.example.com:5000/e2e-test-images/busybox:1.37.0-2', '/bin/sh'],
    ['registry.example.com/e2e-test-images/agnhost@sha256:0123', 'pause'],
  ])('finds %s by the last part of its name', (image, argument) => {
    expect(findImage(image, [])?.args).toEqual([argument])
  })

  it('returns undefined for other images, and the message about them names the flag that adds one', () => {
    expect(findImage('my/app:1', [])).toBeUndefined()
    expect(findImage('', [])).toBeUndefined()
    expect(findImage('constructor', [])).toBeUndefined()
    expect(describeUnknownImage('reg:5000/my/app:1', 'web')).toContain("--image-command 'reg:5000/my/app=COMMAND'")
  })

  it('prefers the commands of --image-command, the last one first', () => {
    const commands = [
      { image: 'app', command: 'sleep 1' },
      { image: 'my/app', command: 'sleep 2' },
      { image: 'busybox:2', command: 'sleep 3' },
    ]
    const script = (image: string) => findImage(image, commands)?.command[2]
    expect(script('reg/my/app:1')).toBe('exec sleep 2 "$@"')
    expect(script('app')).toBe('exec sleep 1 "$@"')
    expect(script('busybox:2')).toBe('exec sleep 3 "$@"')
    expect(findImage('busybox:1', commands)?.args).toEqual(['/bin/sh'])
    expect(findImage('not-app', commands)).toBeUndefined()
  })
})
