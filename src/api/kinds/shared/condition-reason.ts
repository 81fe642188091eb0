// Validates the machine-readable reason of a condition.

const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/

export function conditionReasonProblems(reason: string): readonly string[] {
  if (REASON.test(reason)) return []
  return [
    'a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric ' +
      "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  " +
      "or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is " +
      "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
  ]
}
