import { describe, expect, it } from 'vitest'
import {
  cIdentifierProblems,
  configMapKeyProblems,
  csiDriverNameProblems,
  dns1035LabelProblems,
  dns1123LabelProblems,
  dns1123SubdomainProblems,
  envVarNameProblems,
  labelValueProblems,
  namePrefix,
  pathSegmentPrefixProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
} from './names.ts'

const RULES = {
  dns1123LabelProblems: {
    rule: dns1123LabelProblems,
    valid: ['a', '0', 'a-b', 'a--b', '123-abc', 'a'.repeat(63)],
    invalid: ['', '-', '-a', 'a-', 'A', 'a_b', 'a b', 'a.b', 'ä', 'a\n', 'a'.repeat(64)],
  },
  dns1123SubdomainProblems: {
    rule: dns1123SubdomainProblems,
    valid: ['a', 'a.b', '1.2.3', 'a-b.c-d', 'a'.repeat(253)],
    invalid: ['', '.', 'a.', '.a', 'a..b', 'a.-b', 'A.b', 'a/b', 'a\n', 'a'.repeat(254)],
  },
  dns1035LabelProblems: {
    rule: dns1035LabelProblems,
    valid: ['a', 'a1', 'a-1', 'a'.repeat(63)],
    invalid: ['', '1', '1a', '-a', 'a-', 'A', 'a.b', 'a'.repeat(64)],
  },
  qualifiedNameProblems: {
    rule: qualifiedNameProblems,
    valid: ['simple', 'UP_case.1', 'example.com/name', '1.2/3', 'a/A', `${'a'.repeat(253)}/${'b'.repeat(63)}`],
    invalid: ['', '/', 'a/', '/a', 'a/b/c', '-a', 'a-', 'A/b', 'a b', 'ä', 'a'.repeat(64), `${'a'.repeat(254)}/b`],
  },
  labelValueProblems: {
    rule: labelValueProblems,
    valid: ['', 'a', 'A_b.c-1', '1.2', 'a'.repeat(63)],
    invalid: ['-', 'a-', '_a', 'a b', 'a/b', 'ä', 'a\n', 'a'.repeat(64)],
  },
  configMapKeyProblems: {
    rule: configMapKeyProblems,
    valid: ['a', '.a', 'A_b-c.d', 'tls.crt', 'a'.repeat(253)],
    invalid: ['', '.', '..', '..a', 'a/b', 'a b', 'a'.repeat(254)],
  },
  pathSegmentProblems: {
    rule: pathSegmentProblems,
    valid: ['system:node', 'a.b', '...', 'ä', ''],
    invalid: ['.', '..', 'a/b', '100%'],
  },
  csiDriverNameProblems: {
    rule: csiDriverNameProblems,
    valid: ['hostpath.csi.k8s.io', 'Example.COM', 'local', 'a'.repeat(63)],
    invalid: ['-a', 'a-', 'a_b', 'a/b', 'a'.repeat(64)],
  },
  envVarNameProblems: {
    rule: envVarNameProblems,
    valid: ['A', 'a.b-c', '1', 'with space', '<>~'],
    invalid: ['', 'A=B', 'ä', 'a\t', '\u007f'],
  },
  cIdentifierProblems: {
    rule: cIdentifierProblems,
    valid: ['_', 'a1', 'A_b'],
    invalid: ['', '1a', 'a-b', 'a.b'],
  },
}

for (const [name, { rule, valid, invalid }] of Object.entries(RULES)) {
  describe(name, () => {
    it.each(valid)('accepts %j', (value) => expect(rule(value)).toEqual([]))
    it.each(invalid)('rejects %j', (value) => expect(rule(value)).not.toEqual([]))
  })
}

describe('messages', () => {
  it('contain the rule, examples and the pattern', () => {
    expect(dns1123SubdomainProblems('A_b')).toEqual([
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ])
    expect(dns1123LabelProblems('A')).toEqual([
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
        "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ])
  })

  it('mention dots in a label', () => {
    expect(dns1123LabelProblems('a.b')).toEqual(['must not contain dots'])
  })

  it('name the invalid part of a qualified name', () => {
    expect(qualifiedNameProblems('/a')).toEqual(['prefix part must be non-empty'])
    expect(qualifiedNameProblems('A/b')).toEqual([expect.stringMatching(/^prefix part a lowercase RFC 1123 subdomain/)])
    expect(qualifiedNameProblems('a/')).toEqual([
      'name part must be non-empty',
      expect.stringMatching(/^name part must consist of alphanumeric/),
    ])
    expect(qualifiedNameProblems('a/b/c')).toEqual([
      expect.stringMatching(/^a valid label key must consist of .*prefix and '\/' \(e.g. 'example.com\/MyName'\)$/),
    ])
  })

  it('contain the length limit', () => {
    expect(dns1123LabelProblems('a'.repeat(64))).toEqual(['must be no more than 63 characters'])
    expect(labelValueProblems('a'.repeat(64))).toEqual(['must be no more than 63 bytes'])
    expect(qualifiedNameProblems('a'.repeat(64))).toEqual(['name part must be no more than 63 bytes'])
    expect(labelValueProblems('ä'.repeat(32))[0]).toBe('must be no more than 63 bytes')
    expect(csiDriverNameProblems('a'.repeat(64))).toEqual(['may not be more than 63 bytes'])
  })

  it('report two problems of a config key', () => {
    expect(configMapKeyProblems('../etc')).toEqual([
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME', " +
        " or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      "must not start with '..'",
    ])
  })

  it('report each forbidden character of a path segment, and ".." as a segment but not as a prefix', () => {
    expect(pathSegmentProblems('a/b%')).toEqual(["may not contain '/'", "may not contain '%'"])
    expect(pathSegmentProblems('..')).toEqual(["may not be '..'"])
    expect(pathSegmentPrefixProblems('..')).toEqual([])
  })
})

it('namePrefix makes a generateName with one trailing dash valid, but not a dash alone', () => {
  expect(dns1123SubdomainProblems(namePrefix('claim-'))).toEqual([])
  expect(dns1123SubdomainProblems(namePrefix('claim--'))).toEqual([])
  expect(dns1123SubdomainProblems(namePrefix('-'))).not.toEqual([])
})

it("SYS-10 validates hostile names of a million characters within the test's timeout", () => {
  const hostileNames = [`${'a-'.repeat(500_000)}!`, `${'a.'.repeat(500_000)}!`, 'a'.repeat(1_000_000)]
  for (const { rule } of Object.values(RULES)) for (const value of hostileNames) rule(value)
})
