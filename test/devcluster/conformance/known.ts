/**
 * What is known to differ from a real server, in the words of docs/devcluster.md, and how answers are compared without it.
 */

export interface Known {
  /** The line under "Differences". */
  readonly words: string
  /** A text of an answer without what differs. */
  text?(text: string): string
}

export const known: readonly Known[] = [
  {
    words: 'In a message a map without entries is `null`.',
    text: text => text.replace(/(Invalid value: )\{\}(: )/g, '$1null$2'),
  },
  {
    words:
      'A mistake in a custom resource is told with the whole path of its field; a real server leaves out the beginning in its text now and then.',
    text: text => text.replace(/(?<=: )[\w.[\]]*?(\w+) in body /g, '$1 in body '),
  },
  {
    words:
      'An object in a message is written with the names of its JSON, not with those of the Go types inside a real server.',
    text: text => text.replace(/(Invalid|Duplicate) value: [{[].*?[}\]]: /gs, '$1 value: {…}: '),
  },
  {
    words:
      'A value of the wrong type is told with the type of its schema, which is not always the name of the Go type.',
    text: text =>
      text.replace(/(cannot unmarshal \w+)( \S+)?( into Go (struct field|value) ?\S* ?of type ).*/s, '$1$3…'),
  },
  {
    words: 'Of a spec that may not change, it is told that it may not, not what would have.',
    text: text => text.replace(/(\n@@ .*|\n? *\S*core\.PodSpec\{.*|\n\{.*)$/s, ''),
  },
  {
    words: 'A patch whose result has a value of the wrong type is refused with the result in another order of fields.',
    text: text =>
      text
        .replace(/patch: Invalid value: ".*": /s, 'patch: Invalid value: "…": ')
        .replace(
          /^Invalid value: "(\{|map\[).*": (?=json|strict|error|illegal|quantities|parsing)/s,
          'Invalid value: "…": ',
        ),
  },
  {
    words: 'A message that names the key of an object in the storage may name another than a real server would.',
    text: text => text.replace(/Key: \S+,/, 'Key: …,'),
  },
  {
    words: 'Several mistakes may be told in another order, and each once.',
  },
  {
    words: 'Columns of tables have no descriptions.',
  },
  {
    words: 'A list without items is `[]`, where a real server writes `null` now and then.',
  },
  {
    words:
      'There are no warnings about doubtful parts of a pod, such as a port that two containers have, nor about names with dots.',
  },
]

export const emptyInImmutable =
  'An immutable config map or secret may be written with an empty map where it has none; a real server refuses that.'
export const unknownInApply =
  'Of an apply to a custom resource with a field that its schema does not have, a real server tells other mistakes or not, by chance; here those before the field are told.'
export const ownerOfClaims =
  'An update of a StatefulSet that leaves its templates of claims as they are leaves them to their manager; a real server may give them to the one who updates.'
export const labelsOfJobs =
  'A job without labels is answered with those of its pods; on a real server not where a write changes nothing else.'
export const versionOfNothing =
  'A write that changes nothing never counts the version up; on a real server it does now and then.'
export const forgottenManagers =
  'A write to the status of a custom resource with a spec that does not fit leaves managedFields as they are; a real server forgets them.'

/** Those that end a sequence. */
export const ending = [
  emptyInImmutable,
  unknownInApply,
  ownerOfClaims,
  labelsOfJobs,
  versionOfNothing,
  forgottenManagers,
]

export const withoutKnown = (text: string): string => known.reduce((rest, { text: hide }) => hide?.(rest) ?? rest, text)

/** Whether a warning is of those that are not given. */
export const isLintOfPods = (warning: string) => /^((spec|metadata\.name)[.:]|volume ")/.test(warning)
